#include "tests/ps/failover/servers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "ps/wire/ps.grpc.pb.h"
#include "tensor_service/calls.h"
#include "tensor_service/status.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

constexpr absl::Duration kPatience = absl::Milliseconds(500);

// Returns addresses with ports that are free now.
std::vector<std::string> FreeAddresses(size_t count) {
  std::vector<int> sockets;
  std::vector<std::string> addresses;
  for (size_t i = 0; i < count; ++i) {
    sockets.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    bind(sockets.back(), reinterpret_cast<sockaddr*>(&address), size);
    getsockname(sockets.back(), reinterpret_cast<sockaddr*>(&address), &size);
    addresses.push_back(absl::StrCat("127.0.0.1:", ntohs(address.sin_port)));
  }
  for (const int socket : sockets) close(socket);
  return addresses;
}

std::string NewFolder() {
  static int made = 0;
  const std::string folder =
      absl::StrCat(testing::TempDir(), "/failover-", getpid(), "-", ++made);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace

ReplicatedServers::ReplicatedServers(size_t servers, unsigned replicas,
                                     unsigned workers)
    : replicas_(replicas),
      workers_(workers),
      folder_(NewFolder()),
      etcd_(etcd::RealEtcd::Start()),
      addresses_(FreeAddresses(servers)),
      servers_(servers),
      log_(open((folder_ + "/log").c_str(),
                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
  for (size_t i = 0; i < servers; ++i) {
    EXPECT_TRUE(etcd_ != nullptr && Start(i)) << Logs();
  }
}

ReplicatedServers::~ReplicatedServers() { close(log_); }

bool ReplicatedServers::Start(size_t server) {
  servers_[server] = nullptr;
  servers_[server] = process::Child::Start(
      {"ps/ps_server", "--listen=" + addresses_[server],
       absl::StrCat("--workers=", workers_), "--etcd=" + etcd_->address(),
       "--etcd-prefix=t", absl::StrCat("--servers=", servers_.size()),
       absl::StrCat("--name=ps-", server),
       absl::StrCat("--replicas=", replicas_)},
      {}, log_);
  return servers_[server] != nullptr &&
         servers_[server]->Find("port ").has_value();
}

TrainingConnection::Channels ReplicatedServers::Channels() const {
  TrainingConnection::Channels channels;
  for (const std::string& address : addresses_) {
    grpc::ChannelArguments arguments = tensor::UnlimitedMessages();
    channels.push_back(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments));
  }
  return channels;
}

v1::GetViewReply ReplicatedServers::View() const {
  v1::GetViewReply newest;
  for (const auto& channel : Channels()) {
    grpc::ClientContext context;
    context.set_deadline(tensor::DeadlineAfter(kPatience));
    v1::GetViewReply reply;
    const grpc::Status status = v1::ParameterServer::NewStub(channel)->GetView(
        &context, v1::GetViewRequest(), &reply);
    if (status.ok() && reply.view().number() >= newest.view().number()) {
      newest = std::move(reply);
    }
  }
  return newest;
}

size_t ReplicatedServers::PrimaryOf(int shard) const {
  const std::string primary = View().view().shards(shard).primary().server();
  for (size_t i = 0; i < addresses_.size(); ++i) {
    if (addresses_[i] == primary) return i;
  }
  ADD_FAILURE() << "no server has the address " << primary;
  return 0;
}

bool ReplicatedServers::AwaitBackups(absl::Duration timeout) const {
  const absl::Time limit = base::SteadyNow() + timeout;
  while (base::SteadyNow() < limit) {
    const v1::GetViewReply reply = View();
    bool are_there = reply.has_view();
    for (const v1::ShardReplicas& shard : reply.view().shards()) {
      are_there &= static_cast<unsigned>(shard.backups().size()) == replicas_ &&
                   shard.joiners().empty();
    }
    if (are_there) return true;
    absl::SleepFor(absl::Milliseconds(50));
  }
  ADD_FAILURE() << "backups are missing: " << View().ShortDebugString();
  return false;
}

std::string ReplicatedServers::Logs() const {
  std::ifstream log(folder_ + "/log");
  std::string text;
  text.append(std::istreambuf_iterator<char>(log), {});
  return text;
}

}  // namespace penstock::ps
