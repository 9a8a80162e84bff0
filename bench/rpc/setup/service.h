// The service of all servers and clients of this benchmark. Corresponds to the
// output of protoc's plugin, with grpc::ByteBuffer as the message type.

#ifndef PENSTOCK_BENCH_RPC_SETUP_SERVICE_H_
#define PENSTOCK_BENCH_RPC_SETUP_SERVICE_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace penstock {
namespace bench {

// Unary. Answers a payload with a new one of the same size (see Answer()).
constexpr char kEchoMethod[] = "/penstock.bench.Rpc/Echo";
// Client streaming. Checks payloads, and answers with a StreamTally.
constexpr char kStreamMethod[] = "/penstock.bench.Rpc/Stream";

// Methods of --benchmark=replay. The client's metadata has the call's number in
// the recording, as text. Both sides have the recording.
constexpr char kReplayMethod[] = "/penstock.bench.Rpc/Replay";  // unary
constexpr char kReplayStreamMethod[] = "/penstock.bench.Rpc/ReplayStream";
constexpr char kReplayedCall[] = "penstock-replay";

// The indices of the methods in the grpc::Service.
constexpr int kEchoIndex = 0;
constexpr int kStreamIndex = 1;

// Converts a status to gRPC's type. Both libraries have the same codes.
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

#endif  // PENSTOCK_BENCH_RPC_SETUP_SERVICE_H_
