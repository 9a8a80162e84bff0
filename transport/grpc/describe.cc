#include "transport/grpc/describe.h"

#include <map>
#include <set>

#include "absl/base/thread_annotations.h"
#include "src/core/ext/filters/client_channel/client_channel_channelz.h"
#include "src/core/lib/channel/channelz.h"
#include "src/core/lib/channel/channelz_registry.h"
#include "src/core/lib/gprpp/sync.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/surface/channel.h"
#include "src/core/lib/surface/server.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/grpc/transport.h"
#include "transport/grpc/transport_registry.h"

namespace penstock {
namespace core {
namespace {

using grpc_core::channelz::BaseNode;
using grpc_core::channelz::ChannelNode;
using grpc_core::channelz::ServerNode;
using grpc_core::channelz::SocketNode;
using grpc_core::channelz::SubchannelNode;

// Gives access to private members of gRPC's classes. C++ lets an explicit
// instantiation name a private member, and the template's friend function
// returns the member. The JSON of channelz contains the same ids, but rendering
// it sometimes crashes: gRPC concurrently adds to the traces without a lock.
template <typename Tag, typename Tag::Member kMember>
struct Exposed {
  friend typename Tag::Member MemberOf(Tag) { return kMember; }
};

struct CoreChannel {
  using Member = grpc_channel* const grpc::Channel::*;
  friend Member MemberOf(CoreChannel);
};
template struct Exposed<CoreChannel, &grpc::Channel::c_channel_>;

struct ChildMutex {
  using Member = grpc_core::Mutex ChannelNode::*;
  friend Member MemberOf(ChildMutex);
};
template struct Exposed<ChildMutex, &ChannelNode::child_mu_>;

struct Subchannels {
  using Member = std::set<intptr_t> ChannelNode::*;
  friend Member MemberOf(Subchannels);
};
template struct Exposed<Subchannels, &ChannelNode::child_subchannels_>;

struct SocketMutex {
  using Member = grpc_core::Mutex SubchannelNode::*;
  friend Member MemberOf(SocketMutex);
};
template struct Exposed<SocketMutex, &SubchannelNode::socket_mu_>;

struct ChildSocket {
  using Member = grpc_core::RefCountedPtr<SocketNode> SubchannelNode::*;
  friend Member MemberOf(ChildSocket);
};
template struct Exposed<ChildSocket, &SubchannelNode::child_socket_>;

struct ServerMutex {
  using Member = grpc_core::Mutex ServerNode::*;
  friend Member MemberOf(ServerMutex);
};
template struct Exposed<ServerMutex, &ServerNode::child_mu_>;

struct ServerSockets {
  using Member =
      std::map<intptr_t, grpc_core::RefCountedPtr<SocketNode>> ServerNode::*;
  friend Member MemberOf(ServerSockets);
};
template struct Exposed<ServerSockets, &ServerNode::child_sockets_>;

// Returns the ids of the channel's subchannels. Without thread-safety analysis,
// because clang does not understand a lock behind a pointer to a member.
std::set<intptr_t> SubchannelsOf(ChannelNode* channel)
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  grpc_core::MutexLock lock(&(channel->*MemberOf(ChildMutex())));
  return channel->*MemberOf(Subchannels());
}

// Returns the subchannel's socket. Returns null if the subchannel is not
// connected or no longer exists.
grpc_core::RefCountedPtr<SocketNode> SocketOf(intptr_t subchannel)
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  grpc_core::RefCountedPtr<BaseNode> node =
      grpc_core::channelz::ChannelzRegistry::Get(subchannel);
  if (node == nullptr || node->type() != BaseNode::EntityType::kSubchannel) {
    return nullptr;
  }
  auto* found = static_cast<SubchannelNode*>(node.get());
  grpc_core::MutexLock lock(&(found->*MemberOf(SocketMutex())));
  return found->*MemberOf(ChildSocket());
}

std::vector<grpc_core::RefCountedPtr<SocketNode>> SocketsOf(ServerNode* server)
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  std::vector<grpc_core::RefCountedPtr<SocketNode>> sockets;
  grpc_core::MutexLock lock(&(server->*MemberOf(ServerMutex())));
  for (const auto& each : server->*MemberOf(ServerSockets())) {
    sockets.push_back(each.second);
  }
  return sockets;
}

metrics::ConnectionInfo Describe(SocketNode* socket, metrics::Role role) {
  metrics::ConnectionInfo info;
  Transport* transport = TransportRegistry::Get()->Find(socket->uuid());
  if (transport != nullptr) {
    transport->Describe(&info);
    transport->Unref();
    return info;
  }
  info.role = role;
  info.peer = socket->remote();
  info.path = "http2";
  info.reason = "the peer does not speak Penstock, or Penstock is off here";
  return info;
}

}  // namespace

std::vector<metrics::ConnectionInfo> DescribeConnections(
    grpc::Channel* channel) {
  grpc_core::ApplicationCallbackExecCtx callback_exec_ctx;
  grpc_core::ExecCtx exec_ctx;
  std::vector<metrics::ConnectionInfo> result;
  ChannelNode* node =
      grpc_core::Channel::FromC(channel->*MemberOf(CoreChannel()))
          ->channelz_node();
  if (node == nullptr) return result;
  for (intptr_t subchannel : SubchannelsOf(node)) {
    grpc_core::RefCountedPtr<SocketNode> socket = SocketOf(subchannel);
    if (socket == nullptr) continue;
    result.push_back(Describe(socket.get(), metrics::Role::kClient));
  }
  return result;
}

std::vector<metrics::ConnectionInfo> DescribeConnections(grpc::Server* server) {
  grpc_core::ApplicationCallbackExecCtx callback_exec_ctx;
  grpc_core::ExecCtx exec_ctx;
  std::vector<metrics::ConnectionInfo> result;
  ServerNode* node =
      grpc_core::Server::FromC(server->c_server())->channelz_node();
  if (node == nullptr) return result;
  for (const auto& socket : SocketsOf(node)) {
    result.push_back(Describe(socket.get(), metrics::Role::kServer));
  }
  return result;
}

}  // namespace core
}  // namespace penstock
