#include "bench/rpc/server/server.h"

#include <chrono>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bench/rpc/setup/prepare_memory.h"
#include "bench/rpc/setup/transports.h"
#include "penstock/penstock.h"
#include "penstock/record.h"

namespace penstock {
namespace bench {
namespace {

std::unique_ptr<ServiceHost> MakeHost(Api api, int threads) {
  switch (api) {
    case Api::kSync:
      return MakeSyncHost();
    case Api::kAsync:
      return MakeAsyncHost(threads);
    case Api::kCallback:
      return MakeCallbackHost();
  }
  return nullptr;
}

// Starts recording calls to `path`. Does so only once, because a client process
// may start its own server several times.
absl::Status RecordOnce(const std::string& path) {
  static const absl::Status& status = *new absl::Status(RecordCalls(path));
  return status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const RunOptions& options,
                                                      Transport transport,
                                                      Api api) {
  const absl::Status memory = PrepareMemory(options);
  if (!memory.ok()) return memory;
  if (!options.record_path.empty()) {
    const absl::Status recorded = RecordOnce(options.record_path);
    if (!recorded.ok()) return recorded;
  }
  std::unique_ptr<Server> server(new Server);
  server->host_ = options.recording != nullptr
                      ? MakeReplayHost(options.recording)
                      : MakeHost(api, options.threads);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  if (const auto settings =
          PenstockOptions(transport, Side::kServer, options.server_device)) {
    Enable(&builder, *settings);
  }
  const std::string address = ListenAddress(transport, options.address);
  int port = 0;
  if (!address.empty()) {
    builder.AddListeningPort(
        address, ListenCredentials(transport, options.identity), &port);
  }
  server->host_->Register(&builder);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || (!address.empty() && port == 0)) {
    return absl::UnavailableError(
        absl::StrCat("cannot start a server on ", address));
  }
  server->address_ = ConnectAddress(address, port);
  server->host_->Start();
  return server;
}

Server::~Server() {
  if (server_ == nullptr) return;
  // Shuts down without waiting for open calls. The client has closed its
  // channel, so these calls would never end.
  server_->Shutdown(std::chrono::system_clock::now());
  host_->Drain();
  server_->Wait();
}

}  // namespace bench
}  // namespace penstock
