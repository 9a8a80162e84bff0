// Counts the names of a request before protobuf reads them.

#ifndef PENSTOCK_TENSOR_SERVICE_CODEC_NAMES_H_
#define PENSTOCK_TENSOR_SERVICE_CODEC_NAMES_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock::tensor {

// The number of names in a request, and their bytes.
struct NamesSize {
  size_t names = 0;
  size_t bytes = 0;
};

// Counts the names in field 1 of GetRequest, GetStreamRequest or DeleteRequest.
// Allocates no memory for the names, because a request may have a name in every
// two bytes, for which protobuf would need some 60 bytes. Accepts any bytes.
// Returns INVALID_ARGUMENT if the bytes are not such a message.
absl::StatusOr<NamesSize> CountNames(const grpc::ByteBuffer& request);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CODEC_NAMES_H_
