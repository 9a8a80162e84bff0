#include "transport/grpc/describe.h"

#include <cstdlib>

#include "src/core/lib/channel/channelz.h"
#include "src/core/lib/channel/channelz_registry.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/json/json.h"
#include "src/core/lib/surface/channel.h"
#include "transport/grpc/grpc_abi.h"
#include "transport/grpc/transport.h"
#include "transport/grpc/transport_registry.h"

namespace penstock {
namespace core {
namespace {

using grpc_core::Json;

// grpc::Channel keeps the core channel private. An explicit instantiation may
// name the member; the friend function hands it out.
grpc_channel* CoreChannelOf(grpc::Channel* channel);
template <grpc_channel* const grpc::Channel::*kMember>
struct ChannelAccess {
  friend grpc_channel* CoreChannelOf(grpc::Channel* channel) {
    return channel->*kMember;
  }
};
template struct ChannelAccess<&grpc::Channel::c_channel_>;

const Json* Member(const Json& json, const char* name) {
  if (json.type() != Json::Type::OBJECT) return nullptr;
  auto it = json.object_value().find(name);
  return it == json.object_value().end() ? nullptr : &it->second;
}

// Calls `visit` with each number that the array `list` of `node` holds as
// `id`: how channelz refers from one entity to others.
template <typename Visit>
void ForEachReference(const Json& node, const char* list, const char* id,
                      Visit visit) {
  const Json* array = Member(node, list);
  if (array == nullptr || array->type() != Json::Type::ARRAY) return;
  for (const Json& entry : array->array_value()) {
    const Json* number = Member(entry, id);
    if (number == nullptr) continue;
    visit(static_cast<intptr_t>(
        std::strtoll(number->string_value().c_str(), nullptr, 10)));
  }
}

Json Render(intptr_t id) {
  auto node = grpc_core::channelz::ChannelzRegistry::Get(id);
  return node == nullptr ? Json() : node->RenderJson();
}

ConnectionDescription Describe(intptr_t socket) {
  ConnectionDescription result;
  Transport* transport = TransportRegistry::Get()->Find(socket);
  if (transport == nullptr) {
    auto node = grpc_core::channelz::ChannelzRegistry::Get(socket);
    if (node != nullptr) {
      result.peer =
          static_cast<grpc_core::channelz::SocketNode*>(node.get())->remote();
    }
    result.path = "http2";
    result.reason = "the peer does not speak Penstock, or it is off here";
    return result;
  }
  const session::PathDescription path = transport->DescribePath();
  const session::Counters counters = transport->counters();
  result.peer = transport->peer();
  transport->Unref();
  result.path = path.fabric;
  result.detail = path.detail;
  result.reason = path.reason;
  result.messages_sent = counters.messages_sent;
  result.messages_received = counters.messages_received;
  result.bytes_sent = counters.bytes_sent;
  result.bytes_received = counters.bytes_received;
  return result;
}

}  // namespace

std::vector<ConnectionDescription> DescribeConnections(grpc::Channel* channel) {
  grpc_core::ApplicationCallbackExecCtx callback_exec_ctx;
  grpc_core::ExecCtx exec_ctx;
  std::vector<ConnectionDescription> result;
  auto* node =
      grpc_core::Channel::FromC(CoreChannelOf(channel))->channelz_node();
  if (node == nullptr) return result;
  ForEachReference(node->RenderJson(), "subchannelRef", "subchannelId",
                   [&](intptr_t subchannel) {
                     ForEachReference(Render(subchannel), "socketRef",
                                      "socketId", [&](intptr_t socket) {
                                        result.push_back(Describe(socket));
                                      });
                   });
  return result;
}

}  // namespace core
}  // namespace penstock
