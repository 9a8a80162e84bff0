// Bytes to send and to expose, and memory to read into.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_BYTES_UTIL_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_BYTES_UTIL_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <random>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace conformance {

inline absl::Span<const uint8_t> AsSpan(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline std::string RandomBytes(size_t size, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    const uint64_t word = random();
    memcpy(&bytes[at], &word, std::min(sizeof word, size - at));
  }
  return bytes;
}

// Returns a size from 0 to `max`, log-uniformly.
inline size_t RandomSize(std::mt19937_64* random, size_t max) {
  size_t limit = max;
  for (uint64_t halvings = (*random)() % 12; halvings > 0; --halvings) {
    limit /= 2;
  }
  return (*random)() % (limit + 1);
}

// Returns a copy on the heap, so that a sanitizer detects out-of-bounds
// accesses.
inline memory::Bytes HeapCopy(absl::string_view bytes) {
  memory::Block block = memory::AllocateBlock(bytes.size()).value();
  memcpy(block.data.get(), bytes.data(), bytes.size());
  return block.AsBytes();
}

// Returns `bytes` in pieces of these sizes, and a last piece with the rest.
inline memory::Payload PayloadOf(absl::string_view bytes,
                                 std::initializer_list<size_t> sizes = {}) {
  memory::Payload payload;
  for (size_t size : sizes) {
    size = std::min(size, bytes.size());
    payload.Append(HeapCopy(bytes.substr(0, size)));
    bytes.remove_prefix(size);
  }
  payload.Append(HeapCopy(bytes));
  return payload;
}

inline std::string TextOf(absl::Span<const uint8_t> bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

inline std::string TextOf(const memory::Payload& payload) {
  std::string text(payload.size(), '.');
  payload.CopyTo(reinterpret_cast<uint8_t*>(&text[0]));
  return text;
}

// Memory to read into, with margins that must not change.
class Target {
 public:
  explicit Target(size_t size)
      : bytes_(kMargin + size + kMargin, kUntouched), size_(size) {}

  absl::Span<uint8_t> span() {
    return {reinterpret_cast<uint8_t*>(&bytes_[kMargin]), size_};
  }
  std::string text() const { return bytes_.substr(kMargin, size_); }
  bool margins_are_untouched() const {
    const std::string margin(kMargin, kUntouched);
    return bytes_.substr(0, kMargin) == margin &&
           bytes_.substr(kMargin + size_) == margin;
  }
  void Reset() { bytes_.assign(bytes_.size(), kUntouched); }
  bool is_untouched() const {
    return bytes_ == std::string(bytes_.size(), kUntouched);
  }

 private:
  static constexpr size_t kMargin = 64;
  static constexpr char kUntouched = '\x5a';

  std::string bytes_;
  size_t size_;
};

}  // namespace conformance
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_BYTES_UTIL_H_
