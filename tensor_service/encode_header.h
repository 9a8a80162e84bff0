// What Encode() writes before a tensor's elements. For encoders of other forms
// of tensors.

#ifndef PENSTOCK_TENSOR_SERVICE_ENCODE_HEADER_H_
#define PENSTOCK_TENSOR_SERVICE_ENCODE_HEADER_H_

#include <cstddef>
#include <string>

#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Appends the encoding of `named`, without its elements, which must follow, as
// an element of field 1 of a message. `offset` is where that begins in the
// message; see kPayloadAlignment. Reads no element, so there is no checksum.
void AppendTensorHeader(const NamedTensor& named, size_t offset,
                        std::string* out);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_ENCODE_HEADER_H_
