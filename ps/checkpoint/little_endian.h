// Encodes and decodes little-endian numbers.

#ifndef PENSTOCK_PS_CHECKPOINT_LITTLE_ENDIAN_H_
#define PENSTOCK_PS_CHECKPOINT_LITTLE_ENDIAN_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "transport/base/byte_order.h"

namespace penstock::ps::checkpoint {

template <typename T>
void Put(T value, std::string* out) {
  uint8_t bytes[sizeof(T)];
  base::StoreLittle(value, bytes);
  out->append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

// Removes a number from the front of `bytes`, and returns the number. `bytes`
// must be long enough.
template <typename T>
T Take(absl::string_view* bytes) {
  const T value =
      base::LoadLittle<T>(reinterpret_cast<const uint8_t*>(bytes->data()));
  bytes->remove_prefix(sizeof(T));
  return value;
}

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_LITTLE_ENDIAN_H_
