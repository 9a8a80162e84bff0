// Converts statuses between Abseil and gRPC, and lifts gRPC's limits of size.

#ifndef PENSTOCK_TENSOR_SERVICE_STATUS_H_
#define PENSTOCK_TENSOR_SERVICE_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/channel_arguments.h"
#include "grpcpp/support/status.h"

namespace penstock::tensor {

// Converts a status. Cuts a message that is longer than 2 KiB, as one that
// quotes a peer's name may be: gRPC sends messages as metadata, which are
// limited.
grpc::Status ToGrpc(const absl::Status& status);

// Converts a status, and puts `operation`, which names the object too, before
// its message: "push to ps1: ...". If one of gRPC's limits of size has refused
// a message, adds which setting to change.
absl::Status FromGrpc(const grpc::Status& status, absl::string_view operation);

// Lift gRPC's limit of 4 MiB for a message; bundles may be longer. Give the
// result of the first to CreateCustomChannel(), and call the second before
// BuildAndStart(). gRPC then reads messages of any length into memory.
// TensorStore and ps::Server have budgets for what they keep of them.
//
// What comes compressed has a limit where Penstock is linked to the program: it
// becomes at most `max_decompressed_bytes` long, or eight times as long as it
// came. 0 is no limit.
inline constexpr int kMaxDecompressedBytes = 64 << 20;
grpc::ChannelArguments UnlimitedMessages(
    int max_decompressed_bytes = kMaxDecompressedBytes);
void AllowUnlimitedMessages(grpc::ServerBuilder* builder,
                            int max_decompressed_bytes = kMaxDecompressedBytes);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_STATUS_H_
