#include "collectives/host/streaming_copy.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace penstock::collectives {
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

// Copies between all offsets within a line, where most offsets leave a
// beginning and an end that are no whole lines.
TEST(StreamingCopy, CopiesTheBytesAndNoOthers) {
  const std::vector<uint8_t> from = Numbers(kMinStreamedBytes + 512);
  for (const size_t bytes : {size_t{0}, size_t{1}, kMinStreamedBytes - 1,
                             kMinStreamedBytes, kMinStreamedBytes + 77}) {
    for (size_t offset = 0; offset < 64; ++offset) {
      std::vector<uint8_t> to(bytes + 2 * kMargin, kUntouched);
      StreamingCopy(from.data() + offset, to.data() + kMargin - offset, bytes);
      for (size_t i = 0; i < to.size(); ++i) {
        const bool is_copied =
            i >= kMargin - offset && i < kMargin - offset + bytes;
        ASSERT_EQ(to[i],
                  is_copied ? from[i - kMargin + 2 * offset] : kUntouched)
            << bytes << " bytes at offset " << offset << ", byte " << i;
      }
    }
  }
}

TEST(StreamingCopy, LeavesACopyToItselfAlone) {
  std::vector<uint8_t> bytes = Numbers(kMinStreamedBytes);
  StreamingCopy(bytes.data(), bytes.data(), bytes.size());
  EXPECT_EQ(bytes, Numbers(kMinStreamedBytes));
}

}  // namespace
}  // namespace penstock::collectives
