// Parses fuzz inputs, and builds seeds.

#ifndef PENSTOCK_TESTS_FUZZ_INPUT_H_
#define PENSTOCK_TESTS_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace penstock {
namespace fuzz {

// Aborts the process if `holds` is false: the tested code has broken a promise.
inline void Require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

inline absl::Span<const uint8_t> AsBytes(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline absl::string_view AsText(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Takes numbers and bytes from the front. Returns zeros once the input is
// empty.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(data, size) {}

  bool empty() const { return rest_.empty(); }

  // Takes a little-endian number.
  template <typename T>
  T Number() {
    T value = 0;
    const absl::Span<const uint8_t> bytes = Bytes(sizeof(T));
    for (size_t i = 0; i < bytes.size(); ++i) {
      value |= static_cast<T>(static_cast<T>(bytes[i]) << (8 * i));
    }
    return value;
  }

  // Takes at most `size` bytes.
  absl::Span<const uint8_t> Bytes(size_t size) {
    const absl::Span<const uint8_t> bytes = rest_.subspan(0, size);
    rest_.remove_prefix(bytes.size());
    return bytes;
  }

  // Takes a number of any magnitude: 9 bytes, of which the last sets the
  // magnitude.
  uint64_t AnyNumber() {
    const auto number = Number<uint64_t>();
    return number >> (Number<uint8_t>() % 64);
  }

  absl::Span<const uint8_t> Rest() { return Bytes(rest_.size()); }

 private:
  absl::Span<const uint8_t> rest_;
};

// Returns the bytes that Input::Number<T>() parses as `value`.
template <typename T>
std::string Number(T value) {
  std::string out;
  for (size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(value >> (8 * i)));
  }
  return out;
}

}  // namespace fuzz
}  // namespace penstock

#endif  // PENSTOCK_TESTS_FUZZ_INPUT_H_
