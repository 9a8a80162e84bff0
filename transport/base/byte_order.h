// Fixed-width integers in wire order (little-endian), at any address.

#ifndef PENSTOCK_TRANSPORT_BASE_BYTE_ORDER_H_
#define PENSTOCK_TRANSPORT_BASE_BYTE_ORDER_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace penstock {
namespace base {

// Converts [begin, end) from the host's byte order to the wire's, or back.
inline void SwapIfBig(uint8_t* begin, uint8_t* end) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  std::reverse(begin, end);
#else
  (void)begin;
  (void)end;
#endif
}

// Writes sizeof(T) bytes at `out`.
template <typename T>
inline void StoreLittle(T value, uint8_t* out) {
  std::memcpy(out, &value, sizeof value);
  SwapIfBig(out, out + sizeof value);
}

// Reads a T from the sizeof(T) bytes at `in`.
template <typename T>
inline T LoadLittle(const uint8_t* in) {
  uint8_t bytes[sizeof(T)];
  std::memcpy(bytes, in, sizeof bytes);
  SwapIfBig(bytes, bytes + sizeof bytes);
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_BYTE_ORDER_H_
