// Reads a NamedTensor in its usual form.

#ifndef PENSTOCK_TENSOR_SERVICE_CODEC_PLAIN_TENSOR_H_
#define PENSTOCK_TENSOR_SERVICE_CODEC_PLAIN_TENSOR_H_

#include "absl/strings/string_view.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// The parts of a NamedTensor, in place in the message. Only the element type
// has been checked.
struct PlainTensor {
  absl::string_view name;
  DType dtype;
  Shape shape;
  absl::string_view data;
};

// Reads a NamedTensor in the form that Encode() and generated code write:
// fields in the order of their numbers, each at most once, and only name,
// dtype, shape, padding and data. Returns false for any other form, valid or
// not; decode.cc then reads the tensor more slowly. Reads each byte once,
// because a peer may write to the bytes at the same time.
bool ReadPlainTensor(absl::string_view bytes, PlainTensor* tensor);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CODEC_PLAIN_TENSOR_H_
