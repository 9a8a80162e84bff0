#include "transport/wire/reader.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "tests/transport/wire/wire_test_util.h"

namespace penstock {
namespace wire {
namespace {

TEST(Reader, ReadsFieldsInOrder) {
  const std::string bytes = FromHex("01 0203 04050607 08090a0b0c0d0e0f 4142");
  Reader reader(AsSpan(bytes));
  EXPECT_EQ(reader.Number<uint8_t>(), 0x01);
  EXPECT_EQ(reader.Number<uint16_t>(), 0x0302);
  EXPECT_EQ(reader.Number<uint32_t>(), 0x07060504u);
  EXPECT_EQ(reader.Number<uint64_t>(), 0x0f0e0d0c0b0a0908u);
  EXPECT_FALSE(reader.Finished());
  EXPECT_EQ(reader.String(2), "AB");
  EXPECT_TRUE(reader.Finished());
}

TEST(Reader, StaysFailedAfterAShortRead) {
  const std::string bytes = FromHex("010203");
  Reader reader(AsSpan(bytes));
  EXPECT_EQ(reader.Number<uint32_t>(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.Number<uint8_t>(), 0);
  EXPECT_EQ(reader.String(1), "");
  EXPECT_FALSE(reader.Finished());
}

TEST(Reader, StringLongerThanTheRestFails) {
  const std::string bytes = "abc";
  Reader reader(AsSpan(bytes));
  EXPECT_EQ(reader.String(~size_t{0}), "");
  EXPECT_FALSE(reader.ok());
}

TEST(Reader, NothingCanBeReadOffNothing) {
  Reader reader({});
  EXPECT_TRUE(reader.Finished());
  EXPECT_EQ(reader.String(0), "");
  EXPECT_TRUE(reader.Finished());
  EXPECT_EQ(reader.Number<uint8_t>(), 0);
  EXPECT_FALSE(reader.ok());
}

TEST(AppendNumber, IsReadBack) {
  std::string bytes;
  AppendNumber<uint16_t>(0xabcd, &bytes);
  AppendNumber<uint64_t>(0x0102030405060708, &bytes);
  EXPECT_EQ(ToHex(bytes), "cdab0807060504030201");
  Reader reader(AsSpan(bytes));
  EXPECT_EQ(reader.Number<uint16_t>(), 0xabcd);
  EXPECT_EQ(reader.Number<uint64_t>(), 0x0102030405060708u);
}

}  // namespace
}  // namespace wire
}  // namespace penstock
