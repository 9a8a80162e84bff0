// Drives a Load over a channel through one of gRPC's three client APIs.

#ifndef PENSTOCK_BENCH_RPC_CLIENT_H_
#define PENSTOCK_BENCH_RPC_CLIENT_H_

#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "bench/rpc/cell.h"
#include "bench/rpc/load.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock {
namespace bench {

// Gives an RPC ten seconds. One that takes longer hangs.
inline void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::seconds(10));
}

// Makes one blocking Echo.
absl::Status CallEcho(const std::shared_ptr<grpc::Channel>& channel,
                      const grpc::ByteBuffer& request, grpc::ByteBuffer* reply);

// Runs every lane of `load` to its end, and returns then. The load has the
// outcome. The blocking API takes a thread per lane, the completion-queue API a
// queue and a thread per caller, the callback API gRPC's own threads.
using RunLoad = void (*)(const std::shared_ptr<grpc::Channel>& channel,
                         Load* load);

void RunEchoSync(const std::shared_ptr<grpc::Channel>& channel, Load* load);
void RunStreamSync(const std::shared_ptr<grpc::Channel>& channel, Load* load);
void RunEchoAsync(const std::shared_ptr<grpc::Channel>& channel, Load* load);
void RunStreamAsync(const std::shared_ptr<grpc::Channel>& channel, Load* load);
void RunEchoCallback(const std::shared_ptr<grpc::Channel>& channel, Load* load);
void RunStreamCallback(const std::shared_ptr<grpc::Channel>& channel,
                       Load* load);

// Returns the function for a cell.
RunLoad ClientFor(Benchmark benchmark, Api api);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_CLIENT_H_
