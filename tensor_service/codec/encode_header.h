// Encodes the part of a message before a tensor's elements, for encoders of
// other forms of tensors.

#ifndef PENSTOCK_TENSOR_SERVICE_CODEC_ENCODE_HEADER_H_
#define PENSTOCK_TENSOR_SERVICE_CODEC_ENCODE_HEADER_H_

#include <cstddef>
#include <string>

#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Appends the encoding of `named` without its elements, as an element of field
// 1 of a message. The elements must follow. `offset` is the position of the
// encoding in the message; see kPayloadAlignment. Reads no elements, so adds no
// checksum.
void AppendTensorHeader(const NamedTensor& named, size_t offset,
                        std::string* out);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CODEC_ENCODE_HEADER_H_
