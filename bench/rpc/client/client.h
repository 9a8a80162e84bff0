// Drives a Load over a channel through one of gRPC's three client APIs.

#ifndef PENSTOCK_BENCH_RPC_CLIENT_CLIENT_H_
#define PENSTOCK_BENCH_RPC_CLIENT_CLIENT_H_

#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "bench/rpc/client/load.h"
#include "bench/rpc/message/cell.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock {
namespace bench {

// Sets a deadline of ten seconds, after which an RPC counts as hung.
inline void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::seconds(10));
}

// Makes one blocking Echo call.
absl::Status CallEcho(const std::shared_ptr<grpc::Channel>& channel,
                      const grpc::ByteBuffer& request, grpc::ByteBuffer* reply);

// A function that runs every lane of `load` until the burst ends, and stores
// the results in `load`. The blocking API uses a thread per lane. The
// completion-queue API uses a queue and a thread per caller. The callback API
// uses gRPC's own threads.
using RunLoad = void (*)(const std::shared_ptr<grpc::Channel>& channel,
                         Load* load);

void RunEchoSync(const std::shared_ptr<grpc::Channel>& channel, Load* load);
void RunStreamSync(const std::shared_ptr<grpc::Channel>& channel, Load* load);
void RunEchoAsync(const std::shared_ptr<grpc::Channel>& channel, Load* load);
void RunStreamAsync(const std::shared_ptr<grpc::Channel>& channel, Load* load);
void RunEchoCallback(const std::shared_ptr<grpc::Channel>& channel, Load* load);
void RunStreamCallback(const std::shared_ptr<grpc::Channel>& channel,
                       Load* load);

// Returns the function that runs the load of a benchmark through an API.
RunLoad ClientFor(Benchmark benchmark, Api api);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_CLIENT_CLIENT_H_
