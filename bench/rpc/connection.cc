#include "bench/rpc/connection.h"

#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/rpc/client.h"
#include "bench/rpc/payload.h"
#include "bench/rpc/service.h"
#include "bench/rpc/transports.h"
#include "grpcpp/client_context.h"
#include "transport/penstock.h"

namespace penstock {
namespace bench {
namespace {

// A session may begin on TCP and take its better path a moment later.
constexpr absl::Duration kPathTimeout = absl::Seconds(2);

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(
    const RunOptions& options, Transport transport, Api api) {
  std::unique_ptr<Connection> connection(new Connection(transport));
  absl::Status status = connection->StartServer(options, api);
  if (status.ok()) status = connection->Probe();
  if (!status.ok()) return status;
  return connection;
}

absl::Status Connection::StartServer(const RunOptions& options, Api api) {
  if (transport_ == Transport::kInproc) {
    auto server = Server::Start(options, transport_, api);
    if (!server.ok()) return server.status();
    in_process_ = *std::move(server);
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    channel_ = in_process_->grpc_server()->InProcessChannel(arguments);
    return absl::OkStatus();
  }
  auto remote = StartServerProcess(options, transport_, api);
  if (!remote.ok()) return remote.status();
  remote_ = *std::move(remote);
  channel_ = MakeChannel(transport_, remote_.address, options.client_device);
  return absl::OkStatus();
}

// Does one RPC, which connects the channel and, being not wait_for_ready,
// fails with the reason where a connection is refused.
absl::Status Connection::Probe() {
  const uint64_t seed = 1;
  const grpc::ByteBuffer request = MakePayload(kMinPayload, seed);
  grpc::ByteBuffer reply;
  absl::Status status = CallEcho(channel_, request, &reply);
  if (status.ok()) status = CheckReply(reply, kMinPayload, seed);
  if (!status.ok()) return status;
  const absl::Time limit = absl::Now() + kPathTimeout;
  status = CheckPath();
  while (!status.ok() && absl::Now() < limit &&
         !DescribePaths(*channel_).empty()) {
    absl::SleepFor(absl::Milliseconds(1));
    status = CheckPath();
  }
  return status;
}

absl::Status Connection::CheckPath() const {
  return CheckPaths(transport_, DescribePaths(*channel_));
}

}  // namespace bench
}  // namespace penstock
