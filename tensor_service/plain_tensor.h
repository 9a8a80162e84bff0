// Reads a NamedTensor in the form in which nearly all come.

#ifndef PENSTOCK_TENSOR_SERVICE_PLAIN_TENSOR_H_
#define PENSTOCK_TENSOR_SERVICE_PLAIN_TENSOR_H_

#include "absl/strings/string_view.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// The parts of a NamedTensor, where they lie in the message. Of these, only the
// element type has been checked.
struct PlainTensor {
  absl::string_view name;
  DType dtype;
  Shape shape;
  absl::string_view data;
};

// Reads the bytes of a NamedTensor whose fields are in the order of their
// numbers, each at most once, and none but name, dtype, shape, padding and
// data: so Encode() and generated code write them. Returns false for any other,
// good or bad, of which decode.cc reads more slowly what it is. Reads each byte
// once, as a peer may write to them meanwhile.
bool ReadPlainTensor(absl::string_view bytes, PlainTensor* tensor);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_PLAIN_TENSOR_H_
