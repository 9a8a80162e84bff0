#include "transport/event_engine/stream/packet.h"

#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace penstock {
namespace event_engine {
namespace {

absl::Span<const uint8_t> Span(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

Packet Region() {
  Packet packet;
  packet.kind = Packet::Kind::kRegion;
  packet.offset = 0x0102030405060708;
  packet.acknowledged = 0x11;
  packet.region = {{1, 2, 3}, {4, 5, 6}};
  return packet;
}

TEST(PacketTest, BytesArePinned) {
  EXPECT_EQ(absl::BytesToHexString(EncodeHead(Region())),
            "0302010000000000"
            "0807060504030201"
            "1100000000000000"
            "010000000000000002000000000000000300000000000000"
            "040000000000000005000000000000000600000000000000");
  EXPECT_EQ(EncodeMark(0x41).substr(0, 9), "PSTKMOVEA");
}

TEST(PacketTest, DecodesWhatWasEncoded) {
  const std::string bytes = EncodeHead(Region());
  const absl::StatusOr<Packet> packet = DecodePacket(Span(bytes));
  ASSERT_TRUE(packet.ok()) << packet.status();
  EXPECT_EQ(EncodeHead(*packet), bytes);
  EXPECT_EQ(BytesOf(packet->region), 9u);

  Packet data;
  data.kind = Packet::Kind::kBytes;
  const std::string with_bytes = EncodeHead(data) + "abc";
  const absl::StatusOr<Packet> decoded = DecodePacket(Span(with_bytes));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->bytes, Span(with_bytes).subspan(kHeadBytes));
  EXPECT_EQ(*DecodeMark(Span(EncodeMark(77))), 77u);
}

TEST(PacketTest, TruncatedAndLongerInputIsRejected) {
  const std::string bytes = EncodeHead(Region());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodePacket(Span(bytes.substr(0, size))).ok()) << size;
  }
  EXPECT_FALSE(DecodePacket(Span(bytes + "x")).ok());
  EXPECT_FALSE(DecodePacket(Span(EncodeHead(Packet()) + "x")).ok());
  const std::string mark = EncodeMark(77);
  EXPECT_FALSE(DecodeMark(Span(mark.substr(1))).ok());
  EXPECT_FALSE(DecodeMark(Span(mark + "x")).ok());
}

TEST(PacketTest, SumsThatOverflowAreRejected) {
  Packet packet = Region();
  packet.region[0].length = ~uint64_t{0} - 1;
  EXPECT_FALSE(DecodePacket(Span(EncodeHead(packet))).ok());
  packet = Region();
  packet.region[1].length = 0;
  EXPECT_FALSE(DecodePacket(Span(EncodeHead(packet))).ok());
  packet = Region();
  packet.offset = ~uint64_t{0};
  EXPECT_FALSE(DecodePacket(Span(EncodeHead(packet))).ok());
  EXPECT_FALSE(DecodeMark(Span(EncodeMark(~uint64_t{0}))).ok());
}

// Flips each bit of an encoded packet. The parser must refuse the result, or
// return values that encode to the same bytes.
TEST(PacketTest, EveryBitIsCheckedOrMeansSomething) {
  const std::string good = EncodeHead(Region());
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bytes = good;
    bytes[bit / 8] ^= 1 << bit % 8;
    const absl::StatusOr<Packet> packet = DecodePacket(Span(bytes));
    if (packet.ok() && packet->kind != Packet::Kind::kBytes) {
      EXPECT_EQ(EncodeHead(*packet), bytes) << bit;
    }
  }
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
