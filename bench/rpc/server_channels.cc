#include "bench/rpc/server_channels.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/rpc/client/client.h"
#include "bench/rpc/message/payload.h"
#include "bench/rpc/setup/prepare_memory.h"
#include "bench/rpc/setup/service.h"
#include "bench/rpc/setup/transports.h"
#include "grpcpp/client_context.h"
#include "penstock/penstock.h"

namespace penstock {
namespace bench {
namespace {

// Limits the wait until a session uses the requested path. A session may start
// on TCP and switch a moment later.
constexpr absl::Duration kPathTimeout = absl::Seconds(2);

}  // namespace

absl::StatusOr<std::unique_ptr<ServerChannels>> ServerChannels::Open(
    const RunOptions& options, Transport transport, Api api) {
  const absl::Status memory = PrepareMemory(options);
  if (!memory.ok()) return memory;
  std::unique_ptr<ServerChannels> server(new ServerChannels(transport));
  if (!options.server_addresses.empty()) {
    for (const std::string& address : options.server_addresses) {
      server->remote_.address = address;
      const absl::Status status = server->AddChannel(options);
      if (!status.ok()) return status;
    }
    return server;
  }
  absl::Status status = server->StartServer(options, api);
  if (status.ok()) status = server->AddChannel(options);
  if (!status.ok()) return status;
  const absl::StatusOr<Usage> usage = server->CurrentUsage();
  if (!usage.ok()) return usage.status();
  server->usage_of_first_ = *usage;
  for (int i = 1; i < options.channels; ++i) {
    status = server->AddChannel(options);
    if (!status.ok()) return status;
  }
  return server;
}

absl::Status ServerChannels::StartServer(const RunOptions& options, Api api) {
  if (transport_ == Transport::kInproc) {
    auto server = Server::Start(options, transport_, api);
    if (!server.ok()) return server.status();
    in_process_ = *std::move(server);
    return absl::OkStatus();
  }
  auto remote = StartServerProcess(options, transport_, api);
  if (!remote.ok()) return remote.status();
  remote_ = *std::move(remote);
  return absl::OkStatus();
}

absl::Status ServerChannels::AddChannel(const RunOptions& options) {
  if (in_process_ != nullptr) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    channels_.push_back(
        in_process_->grpc_server()->InProcessChannel(arguments));
  } else {
    channels_.push_back(MakeChannel(transport_, remote_.address,
                                    options.client_device, options.identity));
  }
  return Probe(channels_.back());
}

// Makes one RPC, which connects the channel. The RPC is not wait_for_ready, so
// it fails with the reason if the connection is refused.
absl::Status ServerChannels::Probe(
    const std::shared_ptr<grpc::Channel>& channel) const {
  const uint64_t seed = 1;
  const grpc::ByteBuffer request = MakePayload(kMinPayload, seed);
  grpc::ByteBuffer reply;
  absl::Status status = CallEcho(channel, request, &reply);
  if (status.ok()) status = CheckReply(reply, kMinPayload, seed);
  if (!status.ok()) return status;
  const absl::Time limit = absl::Now() + kPathTimeout;
  status = CheckPath(*channel);
  while (!status.ok() && absl::Now() < limit &&
         !DescribePaths(*channel).empty()) {
    absl::SleepFor(absl::Milliseconds(1));
    status = CheckPath(*channel);
  }
  return status;
}

absl::Status ServerChannels::CheckPath(grpc::Channel& channel) const {
  return bench::CheckPaths(transport_, DescribePaths(channel));
}

absl::Status ServerChannels::CheckPaths() const {
  absl::Status status;
  for (const auto& channel : channels_) status.Update(CheckPath(*channel));
  return status;
}

absl::StatusOr<Usage> ServerChannels::CurrentUsage() const {
  absl::StatusOr<Usage> own = UsageOf(getpid());
  if (!own.ok() || remote_.process == nullptr) return own;
  const absl::StatusOr<Usage> servers = UsageOf(remote_.process->pid());
  if (!servers.ok()) return servers;
  return *own + *servers;
}

absl::StatusOr<double> ServerChannels::CurrentCpuSeconds() const {
  absl::StatusOr<double> own = CpuSecondsOf(getpid());
  if (!own.ok() || remote_.process == nullptr) return own;
  const absl::StatusOr<double> servers = CpuSecondsOf(remote_.process->pid());
  if (!servers.ok()) return servers;
  return *own + *servers;
}

}  // namespace bench
}  // namespace penstock
