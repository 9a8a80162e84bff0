// Fixed-width integers in wire order (little-endian), byte by byte: no
// alignment, no aliasing; compilers make single loads and stores of them.

#ifndef PENSTOCK_TRANSPORT_BASE_BYTE_ORDER_H_
#define PENSTOCK_TRANSPORT_BASE_BYTE_ORDER_H_

#include <cstddef>
#include <cstdint>

namespace penstock {
namespace base {

// Writes the low sizeof(T) bytes of `value` at `out`.
template <typename T>
inline void StoreLittle(T value, uint8_t* out) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out[i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
  }
}

// Reads a T from the sizeof(T) bytes at `in`.
template <typename T>
inline T LoadLittle(const uint8_t* in) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<uint64_t>(in[i]) << (8 * i);
  }
  return static_cast<T>(value);
}

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_BYTE_ORDER_H_
