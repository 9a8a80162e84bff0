// The service that every server here offers and every client calls. This is
// what protoc's plugin would generate, with grpc::ByteBuffer as the message
// type.

#ifndef PENSTOCK_BENCH_RPC_SERVICE_H_
#define PENSTOCK_BENCH_RPC_SERVICE_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace penstock {
namespace bench {

// Unary. Answers a payload with a fresh one of its size (see Answer()).
constexpr char kEchoMethod[] = "/penstock.bench.Rpc/Echo";
// Client streaming. Checks payloads, and answers with a StreamTally.
constexpr char kStreamMethod[] = "/penstock.bench.Rpc/Stream";

// Of --benchmark=replay. The client's metadata has the call's number in the
// recording, which both sides have, as text.
constexpr char kReplayMethod[] = "/penstock.bench.Rpc/Replay";  // unary
constexpr char kReplayStreamMethod[] = "/penstock.bench.Rpc/ReplayStream";
constexpr char kReplayedCall[] = "penstock-replay";

// The order of the methods in the grpc::Service.
constexpr int kEchoIndex = 0;
constexpr int kStreamIndex = 1;

// Both libraries give the codes the same numbers.
inline grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()));
}

inline absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_SERVICE_H_
