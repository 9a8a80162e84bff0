#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor_service/codec.h"

namespace penstock::tensor {
namespace {

// Returns the length of the sequence that starts with `lead`, or 0 if there is
// none.
size_t SequenceLength(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  if (lead >= 0xf0 && lead < 0xf5) return 4;
  return 0;
}

// Returns true if `second` may follow `lead`. Otherwise the sequence would be
// overlong, beyond Unicode's range, or a surrogate. See table 3-7 of the
// Unicode standard.
bool SecondFits(uint8_t lead, uint8_t second) {
  switch (lead) {
    case 0xe0:
      return second >= 0xa0;
    case 0xed:
      return second < 0xa0;
    case 0xf0:
      return second >= 0x90;
    case 0xf4:
      return second < 0x90;
    default:
      return true;
  }
}

// Returns true if all eight bytes are ASCII.
bool EightAreAscii(const char* at) {
  uint64_t eight;
  memcpy(&eight, at, sizeof(eight));
  return (eight & 0x8080808080808080) == 0;
}

// Returns how many bytes at the start of `text` are ASCII, possibly rounded
// down to a multiple of eight. Most names are all ASCII.
size_t AsciiPrefix(absl::string_view text) {
  constexpr size_t kStep = sizeof(uint64_t);
  size_t at = 0;
  for (; text.size() - at >= kStep; at += kStep) {
    if (!EightAreAscii(text.data() + at)) return at;
  }
  // Checks the last eight bytes, which may overlap the previous eight.
  const bool ends_in_ascii =
      text.size() >= kStep && EightAreAscii(text.data() + text.size() - kStep);
  return ends_in_ascii ? text.size() : at;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  size_t at = AsciiPrefix(text);
  while (at < text.size()) {
    uint8_t lead = static_cast<uint8_t>(text[at]);
    size_t length = SequenceLength(lead);
    if (length == 0 || length > text.size() - at) return false;
    for (size_t i = 1; i < length; ++i) {
      uint8_t byte = static_cast<uint8_t>(text[at + i]);
      if ((byte & 0xc0) != 0x80) return false;
      if (i == 1 && !SecondFits(lead, byte)) return false;
    }
    at += length;
  }
  return true;
}

}  // namespace penstock::tensor
