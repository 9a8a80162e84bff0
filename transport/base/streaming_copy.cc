#include "transport/base/streaming_copy.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace penstock {
namespace base {
namespace {

#ifdef __SSE2__

constexpr size_t kLine = 64;

// Stores whole lines past the caches. `to` is aligned to a line.
void StreamLines(const uint8_t* from, uint8_t* to, size_t lines) {
  for (size_t i = 0; i < lines; ++i, from += kLine, to += kLine) {
    const auto* const words = reinterpret_cast<const __m128i*>(from);
    auto* const line = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(words);
    const __m128i b = _mm_loadu_si128(words + 1);
    const __m128i c = _mm_loadu_si128(words + 2);
    const __m128i d = _mm_loadu_si128(words + 3);
    _mm_stream_si128(line, a);
    _mm_stream_si128(line + 1, b);
    _mm_stream_si128(line + 2, c);
    _mm_stream_si128(line + 3, d);
  }
  // Orders the streaming stores before the store that publishes them.
  _mm_sfence();
}

void Stream(const uint8_t* from, uint8_t* to, size_t bytes) {
  const size_t head = -reinterpret_cast<uintptr_t>(to) % kLine;
  const size_t lines = (bytes - head) / kLine;
  const size_t tail = head + lines * kLine;
  std::memcpy(to, from, head);
  StreamLines(from + head, to + head, lines);
  std::memcpy(to + tail, from + tail, bytes - tail);
}

#else

void Stream(const uint8_t* from, uint8_t* to, size_t bytes) {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace

void StreamingCopy(const void* from, void* to, size_t bytes) {
  if (from == to || bytes == 0) return;
  if (bytes < kMinStreamedBytes) {
    std::memcpy(to, from, bytes);
    return;
  }
  Stream(static_cast<const uint8_t*>(from), static_cast<uint8_t*>(to), bytes);
}

}  // namespace base
}  // namespace penstock
