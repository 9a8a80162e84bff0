#include "transport/base/byte_order.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace base {
namespace {

TEST(ByteOrder, LowestByteComesFirst) {
  uint8_t out[8] = {};
  StoreLittle<uint64_t>(0x0102030405060708, out);
  EXPECT_EQ(std::vector<uint8_t>(out, out + 8),
            (std::vector<uint8_t>{8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(LoadLittle<uint64_t>(out), 0x0102030405060708u);
  EXPECT_EQ(LoadLittle<uint32_t>(out), 0x05060708u);
  EXPECT_EQ(LoadLittle<uint16_t>(out), 0x0708);
  EXPECT_EQ(LoadLittle<uint8_t>(out), 0x08);
}

TEST(ByteOrder, StoresNoMoreThanTheType) {
  uint8_t out[4] = {9, 9, 9, 9};
  StoreLittle<uint16_t>(0xabcd, out + 1);
  EXPECT_EQ(std::vector<uint8_t>(out, out + 4),
            (std::vector<uint8_t>{9, 0xcd, 0xab, 9}));
}

TEST(ByteOrder, NeedsNoAlignment) {
  uint8_t memory[16] = {};
  for (int at = 0; at < 8; ++at) {
    StoreLittle<uint64_t>(0xfedcba9876543210, memory + at);
    EXPECT_EQ(LoadLittle<uint64_t>(memory + at), 0xfedcba9876543210u);
  }
}

TEST(ByteOrder, ExtremesSurvive) {
  uint8_t out[8];
  for (uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 63,
                         ~uint64_t{0}, uint64_t{0x80000000}}) {
    StoreLittle<uint64_t>(value, out);
    EXPECT_EQ(LoadLittle<uint64_t>(out), value);
  }
  StoreLittle<int32_t>(-2, out);
  EXPECT_EQ(LoadLittle<int32_t>(out), -2);
}

}  // namespace
}  // namespace base
}  // namespace penstock
