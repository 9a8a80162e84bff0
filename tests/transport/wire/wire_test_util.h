// Hexadecimal bytes, and reproducible damage to bytes.

#ifndef PENSTOCK_TESTS_TRANSPORT_WIRE_WIRE_TEST_UTIL_H_
#define PENSTOCK_TESTS_TRANSPORT_WIRE_WIRE_TEST_UTIL_H_

#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace penstock {
namespace wire {

// Returns three bytes for "01 02ff". Ignores spaces.
inline std::string FromHex(absl::string_view hex) {
  return absl::HexStringToBytes(absl::StrReplaceAll(hex, {{" ", ""}}));
}

inline std::string ToHex(absl::string_view bytes) {
  return absl::BytesToHexString(bytes);
}

inline absl::Span<const uint8_t> AsSpan(absl::string_view bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

// Makes variants of bytes that a hostile or broken peer could send.
class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  uint64_t Below(uint64_t limit) { return random_() % limit; }

  // Makes one to four random changes: replaces a byte, flips a bit, truncates,
  // or appends.
  std::string Mutate(std::string bytes) {
    for (uint64_t times = 1 + Below(4); times > 0; --times) {
      switch (bytes.empty() ? 3 : Below(4)) {
        case 0:
          bytes[Below(bytes.size())] = static_cast<char>(Below(256));
          break;
        case 1:
          bytes[Below(bytes.size())] ^= static_cast<char>(1 << Below(8));
          break;
        case 2:
          bytes.resize(Below(bytes.size()));
          break;
        default:
          bytes += Random(Below(20));
          break;
      }
    }
    return bytes;
  }

  std::string Random(size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(Below(256));
    return bytes;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace wire
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_WIRE_WIRE_TEST_UTIL_H_
