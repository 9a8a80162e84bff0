// gRPC's metadata to bytes and back. Keys that gRPC knows, and values that
// nearly every call has, are one byte; docs/protocol.md has their numbers.
// There is no state, so that batches may be encoded in any order and dropped.

#ifndef PENSTOCK_TRANSPORT_GRPC_METADATA_CODEC_H_
#define PENSTOCK_TRANSPORT_GRPC_METADATA_CODEC_H_

#include <string>

#include "absl/status/status.h"
#include "src/core/lib/transport/metadata_batch.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// Replaces what `out` holds; one that is used again saves allocations.
void EncodeMetadata(const grpc_metadata_batch& batch, std::string* out);

// The trailers of a stream that ends with `status`, without a batch.
std::string EncodeStatus(const absl::Status& status);

// Adds what `bytes` holds to `batch`, whose values share a copy of them.
// INVALID_ARGUMENT where they are cut short, or a key or value is not one of
// gRPC.
absl::Status DecodeMetadata(absl::string_view bytes,
                            grpc_metadata_batch* batch);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_METADATA_CODEC_H_
