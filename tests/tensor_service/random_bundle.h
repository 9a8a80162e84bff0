// Draws random bundles.

#ifndef PENSTOCK_TESTS_TENSOR_SERVICE_RANDOM_BUNDLE_H_
#define PENSTOCK_TESTS_TENSOR_SERVICE_RANDOM_BUNDLE_H_

#include <cstddef>
#include <random>
#include <string>

#include "tensor_service/allocator.h"
#include "tensor_service/codec.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Returns a tensor of random type and elements, of about 0 to `max_bytes`
// bytes. The size is log-uniform.
inline Tensor RandomTensor(std::mt19937* random, size_t max_bytes,
                           Allocator* allocator) {
  const auto dtype = static_cast<DType>(1 + (*random)() % 10);
  size_t bytes = max_bytes;
  for (unsigned n = (*random)() % 16; n > 0; --n) bytes /= 2;
  const size_t elements = (*random)() % (bytes / ElementSize(dtype) + 1);
  Tensor tensor =
      *Tensor::Allocate(dtype, {static_cast<int64_t>(elements)}, allocator);
  const auto first = (*random)();
  char* data = tensor.buffer()->mutable_data();
  for (size_t i = 0; i < tensor.byte_size(); ++i) {
    data[i] = static_cast<char>(first + i * 31 + (i >> 8));
  }
  return tensor;
}

// Returns up to ten random tensors, named by their positions, in memory of
// `some` or `others`.
inline Bundle RandomBundle(std::mt19937* random, size_t max_bytes,
                           Allocator* some, Allocator* others) {
  Bundle bundle;
  for (size_t n = 1 + (*random)() % 10; n > 0; --n) {
    const std::string name(1 + (*random)() % 70,
                           static_cast<char>('a' + bundle.tensors.size()));
    Allocator* const allocator = (*random)() % 3 > 0 ? some : others;
    bundle.tensors.push_back(
        {name, RandomTensor(random, max_bytes, allocator)});
  }
  return bundle;
}

}  // namespace penstock::tensor

#endif  // PENSTOCK_TESTS_TENSOR_SERVICE_RANDOM_BUNDLE_H_
