// Addresses and sizes of elements.

#ifndef PENSTOCK_COLLECTIVES_ELEMENTS_H_
#define PENSTOCK_COLLECTIVES_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor_service/dtype.h"

namespace penstock::collectives {

// Returns the address of an element.
inline const uint8_t* At(const void* data, int64_t index, tensor::DType dtype) {
  return static_cast<const uint8_t*>(data) +
         index * static_cast<int64_t>(tensor::ElementSize(dtype));
}

inline uint8_t* At(void* data, int64_t index, tensor::DType dtype) {
  return static_cast<uint8_t*>(data) +
         index * static_cast<int64_t>(tensor::ElementSize(dtype));
}

inline size_t BytesOf(tensor::DType dtype, int64_t count) {
  return static_cast<size_t>(count) * tensor::ElementSize(dtype);
}

// Copies memory. The ranges must be equal or must not overlap.
inline void Copy(const void* from, void* to, size_t bytes) {
  if (from != to && bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_ELEMENTS_H_
