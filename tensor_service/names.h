// Lists of names in requests, before protobuf reads them.

#ifndef PENSTOCK_TENSOR_SERVICE_NAMES_H_
#define PENSTOCK_TENSOR_SERVICE_NAMES_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock::tensor {

// How many names a request has, and their bytes.
struct NamesSize {
  size_t names = 0;
  size_t bytes = 0;
};

// Counts the names in field 1 of GetRequest, GetStreamRequest or DeleteRequest.
// Takes no memory for them: two bytes of a request can be a name, and protobuf
// takes some 60 bytes for each. Accepts any bytes. Returns INVALID_ARGUMENT if
// they are no such message.
absl::StatusOr<NamesSize> CountNames(const grpc::ByteBuffer& request);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_NAMES_H_
