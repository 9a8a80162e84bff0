// Tests the header before each packet, byte by byte.

#include "transport/fabric/verbs/formats/packet.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Encoded(PacketHeader::Kind kind, uint16_t credits) {
  Bytes bytes(kPacketHeaderBytes, 0xee);
  PacketHeader header;
  header.kind = kind;
  header.credits = credits;
  EncodeHeader(header, bytes.data());
  return bytes;
}

bool IsMalformed(const Bytes& bytes) {
  return ParseHeader(bytes).status().code() ==
         absl::StatusCode::kInvalidArgument;
}

TEST(PacketTest, GoldenBytes) {
  EXPECT_EQ(Encoded(PacketHeader::Kind::kPacket, 0x0102),
            (Bytes{1, 0, 2, 1, 0, 0, 0, 0}));
  EXPECT_EQ(Encoded(PacketHeader::Kind::kCredits, 0xffff),
            (Bytes{2, 0, 0xff, 0xff, 0, 0, 0, 0}));
}

TEST(PacketTest, ParsingGivesBackWhatWasEncoded) {
  for (const auto kind :
       {PacketHeader::Kind::kPacket, PacketHeader::Kind::kCredits}) {
    for (const int credits : {0, 1, 255, 256, 65535}) {
      const absl::StatusOr<PacketHeader> header =
          ParseHeader(Encoded(kind, static_cast<uint16_t>(credits)));
      ASSERT_TRUE(header.ok()) << header.status();
      EXPECT_EQ(header->kind, kind);
      EXPECT_EQ(header->credits, credits);
    }
  }
}

TEST(PacketTest, TruncatedHeaderIsRejected) {
  const Bytes whole = Encoded(PacketHeader::Kind::kPacket, 1);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(IsMalformed(Bytes(whole.begin(), whole.begin() + size)))
        << size;
  }
}

TEST(PacketTest, OnlyAPacketHasMoreThanItsHeader) {
  Bytes packet = Encoded(PacketHeader::Kind::kPacket, 1);
  Bytes credits = Encoded(PacketHeader::Kind::kCredits, 1);
  packet.push_back('x');
  credits.push_back('x');
  EXPECT_TRUE(ParseHeader(packet).ok());
  EXPECT_TRUE(IsMalformed(credits));
}

TEST(PacketTest, UnknownKindIsRejected) {
  for (int kind = 0; kind < 256; ++kind) {
    Bytes bytes = Encoded(PacketHeader::Kind::kPacket, 1);
    bytes[0] = static_cast<uint8_t>(kind);
    EXPECT_EQ(IsMalformed(bytes), kind != 1 && kind != 2) << kind;
  }
}

TEST(PacketTest, ReservedBytesAreZero) {
  for (const size_t at : {1, 4, 5, 6, 7}) {
    Bytes bytes = Encoded(PacketHeader::Kind::kPacket, 1);
    bytes[at] = 0x80;
    EXPECT_TRUE(IsMalformed(bytes)) << at;
  }
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
