// Tests the bytes around packets and reads, as docs/protocol.md shows them.

#include "transport/fabric/tcp/framing.h"

#include <cstdint>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/tcp/tcp_test_util.h"

namespace penstock {
namespace fabric {
namespace tcp {
namespace {

std::string Encode(const UnitHeader& header) {
  std::string bytes;
  AppendUnitHeader(header, &bytes);
  return bytes;
}

bool Parses(uint32_t length, int type) {
  const std::string bytes =
      Encode(UnitHeader{length, static_cast<UnitType>(type), 7});
  return ParseUnitHeader(AsSpan(bytes).data()).ok();
}

TEST(UnitHeader, HasTheBytesOfTheDocument) {
  const struct {
    UnitHeader header;
    const char* hex;
  } kGolden[] = {
      {{0x25, UnitType::kPacket, 0}, "25000000 01 000000 0000000000000000"},
      {{0, UnitType::kDoorbell, 0}, "00000000 02 000000 0000000000000000"},
      {{20, UnitType::kRead, 2}, "14000000 03 000000 0200000000000000"},
      {{0x40000, UnitType::kReadData, 0x1122334455667788},
       "00000400 04 000000 8877665544332211"},
      {{0, UnitType::kReadError, 3}, "00000000 05 000000 0300000000000000"},
  };
  for (const auto& golden : kGolden) {
    EXPECT_EQ(ToHex(Encode(golden.header)), ToHex(FromHex(golden.hex)));
    const std::string bytes = FromHex(golden.hex);
    ASSERT_EQ(bytes.size(), kUnitHeaderBytes);
    const auto header = ParseUnitHeader(AsSpan(bytes).data());
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->length, golden.header.length);
    EXPECT_EQ(header->type, golden.header.type);
    EXPECT_EQ(header->cookie, golden.header.cookie);
  }
}

TEST(UnitHeader, IsAppended) {
  std::string bytes = "before";
  AppendUnitHeader(UnitHeader{0, UnitType::kDoorbell, 0}, &bytes);
  EXPECT_EQ(bytes.size(), 6 + kUnitHeaderBytes);
  EXPECT_EQ(bytes.substr(0, 6), "before");
}

TEST(UnitHeader, LengthMustFitTheType) {
  for (uint32_t length : {0, 1, 65535, 65536}) EXPECT_TRUE(Parses(length, 1));
  EXPECT_FALSE(Parses(65537, 1));
  EXPECT_FALSE(Parses(~uint32_t{0}, 1));
  for (int empty : {2, 5, 7}) {
    EXPECT_TRUE(Parses(0, empty));
    EXPECT_FALSE(Parses(1, empty));
  }
  EXPECT_TRUE(Parses(20, 3));
  for (uint32_t length : {0, 19, 21}) EXPECT_FALSE(Parses(length, 3));
  for (uint32_t length : {1, 1048576}) EXPECT_TRUE(Parses(length, 4));
  for (uint32_t length : {0, 1048577}) EXPECT_FALSE(Parses(length, 4));
  for (uint32_t length : {1, 262144}) EXPECT_TRUE(Parses(length, 6));
  for (uint32_t length : {0, 262145}) EXPECT_FALSE(Parses(length, 6));
}

TEST(UnitHeader, UnknownTypesAreRefused) {
  for (int type = 0; type < 256; ++type) {
    if (type >= 1 && type <= 7) continue;
    for (uint32_t length : {0, 1, 20}) EXPECT_FALSE(Parses(length, type));
  }
}

TEST(UnitHeader, PaddingMustBeZero) {
  for (size_t at : {5, 6, 7}) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = Encode(UnitHeader{0, UnitType::kDoorbell, 0});
      bytes[at] = static_cast<char>(1 << bit);
      EXPECT_FALSE(ParseUnitHeader(AsSpan(bytes).data()).ok()) << at;
    }
  }
}

TEST(UnitHeader, ErrorNamesTypeAndLength) {
  const std::string bytes =
      Encode(UnitHeader{70000, static_cast<UnitType>(9), 0});
  const absl::Status status = ParseUnitHeader(AsSpan(bytes).data()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "malformed unit on tcp: type 9, length 70000");
}

// Parses any 16 bytes. The parser must refuse them, or return values that
// encode to the same bytes.
TEST(UnitHeader, WhateverParsesEncodesToTheSameBytes) {
  std::mt19937_64 random(3);
  int parsed = 0;
  for (int i = 0; i < 200 * 1000; ++i) {
    std::string bytes =
        Encode(UnitHeader{static_cast<uint32_t>(random() % 30),
                          static_cast<UnitType>(random() % 7), random()});
    // Damages one byte of most headers, because random bytes are hardly ever a
    // valid header.
    bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto header = ParseUnitHeader(AsSpan(bytes).data());
    if (!header.ok()) continue;
    ++parsed;
    ASSERT_EQ(ToHex(Encode(*header)), ToHex(bytes));
  }
  EXPECT_GT(parsed, 10 * 1000);
}

TEST(ReadRequest, HasTheBytesOfTheDocument) {
  std::string bytes;
  AppendReadRequest(ReadRequest{9, 0x40000, 0x40000}, &bytes);
  EXPECT_EQ(ToHex(bytes),
            ToHex(FromHex("0900000000000000 0000040000000000 00000400")));
  const ReadRequest request = ParseReadRequest(AsSpan(bytes).data());
  EXPECT_EQ(request.key, 9u);
  EXPECT_EQ(request.offset, 0x40000u);
  EXPECT_EQ(request.length, 0x40000u);
}

TEST(ReadRequest, EveryValueSurvives) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) {
    const ReadRequest sent{random(), random(), static_cast<uint32_t>(random())};
    std::string bytes;
    AppendReadRequest(sent, &bytes);
    ASSERT_EQ(bytes.size(), kReadBodyBytes);
    const ReadRequest parsed = ParseReadRequest(AsSpan(bytes).data());
    EXPECT_EQ(parsed.key, sent.key);
    EXPECT_EQ(parsed.offset, sent.offset);
    EXPECT_EQ(parsed.length, sent.length);
  }
}

}  // namespace
}  // namespace tcp
}  // namespace fabric
}  // namespace penstock
