#include "transport/base/streaming_copy.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace base {
namespace {

constexpr size_t kMargin = 128;
constexpr uint8_t kUntouched = 0xEE;

std::vector<uint8_t> Numbers(size_t size) {
  std::vector<uint8_t> numbers(size);
  for (size_t i = 0; i < size; ++i) {
    numbers[i] = static_cast<uint8_t>(i * 31 + i / 251);
  }
  return numbers;
}

// Copies between all offsets within a cache line. Most copies then begin and
// end with a part of a line.
TEST(StreamingCopy, CopiesTheBytesAndNoOthers) {
  const std::vector<uint8_t> from = Numbers(kMinStreamedBytes + 512);
  for (const size_t bytes : {size_t{0}, size_t{1}, kMinStreamedBytes - 1,
                             kMinStreamedBytes, kMinStreamedBytes + 77}) {
    for (size_t offset = 0; offset < 64; ++offset) {
      std::vector<uint8_t> to(bytes + 2 * kMargin, kUntouched);
      std::vector<uint8_t> expected = to;
      std::memcpy(expected.data() + kMargin - offset, from.data() + offset,
                  bytes);
      StreamingCopy(from.data() + offset, to.data() + kMargin - offset, bytes);
      // Compares without a loop, which is slow in builds for sanitizers.
      ASSERT_EQ(std::memcmp(to.data(), expected.data(), to.size()), 0)
          << bytes << " bytes at offset " << offset;
    }
  }
}

TEST(StreamingCopy, LeavesACopyToItselfAlone) {
  std::vector<uint8_t> bytes = Numbers(kMinStreamedBytes);
  StreamingCopy(bytes.data(), bytes.data(), bytes.size());
  EXPECT_EQ(bytes, Numbers(kMinStreamedBytes));
}

}  // namespace
}  // namespace base
}  // namespace penstock
