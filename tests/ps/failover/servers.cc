#include "tests/ps/failover/servers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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
constexpr int kStartTries = 4;  // each waits for ten seconds

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

std::vector<std::string> AddressesOn(const ReplicatedServers::Hosts& hosts,
                                     size_t servers) {
  std::vector<std::string> addresses;
  for (size_t i = 0; i < servers; ++i) {
    addresses.push_back(
        absl::StrCat(Network::AddressOf(hosts.first_host + i), ":2222"));
  }
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
                                     unsigned workers,
                                     std::vector<std::string> flags)
    : ReplicatedServers(Hosts(), FreeAddresses(servers), replicas, workers,
                        std::move(flags)) {}

ReplicatedServers::ReplicatedServers(const Hosts& hosts, size_t servers,
                                     unsigned workers,
                                     std::vector<std::string> flags)
    : ReplicatedServers(hosts, AddressesOn(hosts, servers), /*replicas=*/1,
                        workers, std::move(flags)) {}

ReplicatedServers::ReplicatedServers(const Hosts& hosts,
                                     std::vector<std::string> addresses,
                                     unsigned replicas, unsigned workers,
                                     std::vector<std::string> flags)
    : replicas_(replicas),
      workers_(workers),
      flags_(std::move(flags)),
      folder_(NewFolder()),
      hosts_(hosts),
      etcd_(hosts.network == nullptr ? etcd::RealEtcd::Start() : nullptr),
      etcd_address_(etcd_ == nullptr ? hosts.etcd : etcd_->address()),
      addresses_(std::move(addresses)),
      servers_(addresses_.size()),
      has_quota_(addresses_.size(), true),
      log_(open((folder_ + "/log").c_str(),
                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
  for (size_t i = 0; i < servers_.size(); ++i) {
    names_.push_back(absl::StrCat("ps-", i));
    EXPECT_TRUE(!etcd_address_.empty() && Start(i)) << Logs();
  }
}

ReplicatedServers::~ReplicatedServers() { close(log_); }

bool ReplicatedServers::Start(size_t server) {
  servers_[server] = nullptr;
  std::vector<std::string> command;
  if (hosts_.network != nullptr) {
    command = hosts_.network->Enter(hosts_.first_host + server);
  }
  if (!has_quota_[server]) {
    command = {"/bin/sh", "-c", "ulimit -f 1; exec \"$0\" \"$@\""};
  }
  for (std::string& word : std::vector<std::string>{
           "ps/ps_server", "--listen=" + addresses_[server],
           absl::StrCat("--workers=", workers_), "--etcd=" + etcd_address_,
           "--etcd-prefix=t", absl::StrCat("--servers=", servers_.size()),
           "--name=" + names_[server],
           absl::StrCat("--replicas=", replicas_)}) {
    command.push_back(std::move(word));
  }
  command.insert(command.end(), flags_.begin(), flags_.end());
  servers_[server] = process::Child::Start(command, {}, log_);
  if (servers_[server] == nullptr) return false;
  // Tries several times. A server waits for etcd, which takes long on a busy
  // machine.
  for (int i = 0; i < kStartTries && servers_[server]->IsAlive(); ++i) {
    if (servers_[server]->Find("port ").has_value()) return true;
  }
  return false;
}

void ReplicatedServers::WipeEtcd() {
  etcd_->process()->Kill();
  const std::string url = "http://" + etcd_address_;
  etcd_ = etcd::RealEtcd::Start(
      {"--listen-client-urls=" + url, "--advertise-client-urls=" + url});
  EXPECT_NE(etcd_, nullptr);
}

bool ReplicatedServers::StartElsewhere(size_t server, const std::string& name) {
  addresses_[server] = FreeAddresses(1).front();
  names_[server] = name;
  return Start(server);
}

std::pair<int, std::string> ReplicatedServers::RunPs(
    const std::string& command,
    const std::vector<std::string>& arguments) const {
  const std::string line =
      absl::StrCat("timeout 60 cli/penstock ps ", command, " ", target(), " ",
                   absl::StrJoin(arguments, " "), " 2>&1");
  FILE* const output = popen(line.c_str(), "r");
  if (output == nullptr) return {-1, "was not started"};
  std::string said;
  char some[4096];
  while (const size_t bytes = fread(some, 1, sizeof(some), output)) {
    said.append(some, bytes);
  }
  return {WEXITSTATUS(pclose(output)), said};
}

int ReplicatedServers::PartsOf(size_t server) const {
  int parts = 0;
  const auto is_it = [&](const v1::Replica& replica) {
    return replica.server() == addresses_[server];
  };
  const v1::GetViewReply reply = View();
  for (const v1::ShardReplicas& shard : reply.view().shards()) {
    parts += is_it(shard.primary()) ? 1 : 0;
    for (const v1::Replica& backup : shard.backups()) parts += is_it(backup);
    for (const v1::Replica& joiner : shard.joiners()) parts += is_it(joiner);
  }
  return parts;
}

std::shared_ptr<grpc::Channel> ReplicatedServers::ChannelTo(
    const std::string& address) {
  grpc::ChannelArguments arguments = tensor::UnlimitedMessages();
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                   arguments);
}

TrainingConnection::Channels ReplicatedServers::Channels() const {
  TrainingConnection::Channels channels;
  for (const std::string& address : addresses_) {
    grpc::ChannelArguments arguments = tensor::UnlimitedMessages();
    channels.push_back(
        grpc::CreateCustomChannel(address, credentials_, arguments));
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
