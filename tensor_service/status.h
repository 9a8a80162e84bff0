// Converts statuses between Abseil and gRPC, and raises gRPC's size limits.

#ifndef PENSTOCK_TENSOR_SERVICE_STATUS_H_
#define PENSTOCK_TENSOR_SERVICE_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/channel_arguments.h"
#include "grpcpp/support/status.h"

namespace penstock::tensor {

// Converts a status. Truncates a message above 2 KiB, for example one that
// quotes a peer's name: gRPC sends messages as metadata, which has a size
// limit.
grpc::Status ToGrpc(const absl::Status& status);

// Converts a status. Prepends `operation`, which names operation and object, to
// the message: "push to ps1: ...". If one of gRPC's size limits refused a
// message, adds the setting to change.
absl::Status FromGrpc(const grpc::Status& status, absl::string_view operation);

// Remove gRPC's message limit of 4 MiB; bundles may be longer. Pass the result
// of UnlimitedMessages() to CreateCustomChannel(). Call
// AllowUnlimitedMessages() before BuildAndStart(). gRPC then reads messages of
// any length into memory. TensorStore and ps::Server have budgets for the data
// that they store.
//
// In a program with Penstock, `max_decompressed_bytes` limits a compressed
// message: decompressed, the message may have that many bytes, or eight times
// its compressed size if that is more. 0 disables the limit.
inline constexpr int kMaxDecompressedBytes = 64 << 20;
grpc::ChannelArguments UnlimitedMessages(
    int max_decompressed_bytes = kMaxDecompressedBytes);
void AllowUnlimitedMessages(grpc::ServerBuilder* builder,
                            int max_decompressed_bytes = kMaxDecompressedBytes);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_STATUS_H_
