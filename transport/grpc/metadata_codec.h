// gRPC's metadata to bytes and back: length-prefixed keys and values, without
// state, so that batches may be encoded on any thread in any order.

#ifndef PENSTOCK_TRANSPORT_GRPC_METADATA_CODEC_H_
#define PENSTOCK_TRANSPORT_GRPC_METADATA_CODEC_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/core/lib/transport/metadata_batch.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

std::string EncodeMetadata(const grpc_metadata_batch& batch);

// The trailers of a stream that ends with `status`, without a batch.
std::string EncodeStatus(const absl::Status& status);

// Adds what `bytes` holds to `batch`. INVALID_ARGUMENT where they are cut
// short, or a key or value is not one of gRPC.
absl::Status DecodeMetadata(absl::string_view bytes,
                            grpc_metadata_batch* batch);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_METADATA_CODEC_H_
