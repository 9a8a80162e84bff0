// Formats sizes in bytes for people: "1.5 GiB".

#ifndef PENSTOCK_TRANSPORT_BASE_BYTES_TEXT_H_
#define PENSTOCK_TRANSPORT_BASE_BYTES_TEXT_H_

#include <cstdint>
#include <string>

namespace penstock {
namespace base {

struct ByteUnit {
  const char* name;
  uint64_t bytes;
};

// The units, from the largest to the smallest.
inline constexpr ByteUnit kByteUnits[] = {{"GiB", uint64_t{1} << 30},
                                          {"MiB", uint64_t{1} << 20},
                                          {"KiB", uint64_t{1} << 10},
                                          {"B", 1}};

// Returns "8 B", "64 KiB", "1.5 MiB".
std::string BytesText(uint64_t bytes);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_BYTES_TEXT_H_
