// Detects tensors that were received without a copy.

#ifndef PENSTOCK_TESTS_TENSOR_SERVICE_SAME_MEMORY_H_
#define PENSTOCK_TESTS_TENSOR_SERVICE_SAME_MEMORY_H_

#include <cstddef>

#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Returns true if `got` shares the memory of `sent`. Changes a byte of `sent`,
// checks that the byte has changed in `got`, and restores it. Cannot compare
// addresses, because the memory is mapped twice.
inline bool IsSameMemory(const Tensor& sent, const Tensor& got) {
  const size_t middle = sent.byte_size() / 2;
  const char before = got.bytes()[middle];
  sent.buffer()->mutable_data()[middle] ^= 1;
  const bool is_same = got.bytes()[middle] != before;
  sent.buffer()->mutable_data()[middle] ^= 1;
  return is_same;
}

}  // namespace penstock::tensor

#endif  // PENSTOCK_TESTS_TENSOR_SERVICE_SAME_MEMORY_H_
