// Tests peers that violate the rules of a movable stream.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/transport/event_engine/stream/ends.h"
#include "transport/event_engine/stream/packet.h"

namespace penstock {
namespace event_engine {
namespace {

// A fixture in which the test is the peer, and sends each packet itself.
class LiarTest : public testing::Test {
 protected:
  LiarTest() {
    pair_.NewLink();
    pair_.Move(0);
    liar_ = std::move(pair_.waiting[1]);
    Send(Packet::Kind::kAck, 0);  // the greeting
  }

  void Send(Packet::Kind kind, uint64_t offset, const std::string& bytes = "",
            uint64_t acknowledged = 0) {
    Packet packet;
    packet.kind = kind;
    packet.offset = offset;
    packet.acknowledged = acknowledged;
    const std::string text = EncodeHead(packet) + bytes;
    liar_->Send({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    victim().Poll();
    victim().Settle();
  }
  void SendTcp(const std::string& bytes) {
    pair_.ends[1].tcp += bytes;
    victim().ReadTcp(bytes.size());
  }
  End& victim() { return pair_.ends[0]; }
  bool Fails() { return !victim().stream.error().ok(); }

  Pair pair_;
  std::unique_ptr<fabric::Endpoint> liar_;
};

TEST_F(LiarTest, BytesBeforeTheMove) {
  Send(Packet::Kind::kBytes, 0, "x");
  EXPECT_TRUE(Fails());
}

TEST_F(LiarTest, MovesTwice) {
  Send(Packet::Kind::kBegin, 0);
  EXPECT_FALSE(Fails());
  Send(Packet::Kind::kBegin, 0);
  EXPECT_TRUE(Fails());
}

TEST_F(LiarTest, MovesToThePast) {
  SendTcp(std::string(1, '\0'));
  Send(Packet::Kind::kBegin, 0);
  EXPECT_TRUE(Fails());
}

TEST_F(LiarTest, LeavesAGap) {
  Send(Packet::Kind::kBegin, 0);
  Send(Packet::Kind::kBytes, 1, "x");
  EXPECT_TRUE(Fails());
}

TEST_F(LiarTest, AcknowledgesWhatWasNotSent) {
  Send(Packet::Kind::kAck, 0, "", 1);
  EXPECT_TRUE(Fails());
}

TEST_F(LiarTest, SendsGarbage) {
  liar_->Send({});
  victim().Poll();
  EXPECT_TRUE(Fails());
}

TEST_F(LiarTest, RegionThatWasNotExposed) {
  Send(Packet::Kind::kBegin, 0);
  Packet packet;
  packet.kind = Packet::Kind::kRegion;
  packet.region = {{77, 0, 8}};
  const std::string text = EncodeHead(packet);
  liar_->Send({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  victim().Poll();
  EXPECT_TRUE(Fails());
}

TEST_F(LiarTest, GoesOnOnTcpWithoutAMark) {
  Send(Packet::Kind::kBegin, 0);
  SendTcp(std::string(kMarkBytes, 'x'));
  EXPECT_TRUE(Fails());
}

TEST_F(LiarTest, ComesBackWithAGap) {
  Send(Packet::Kind::kBegin, 0);
  SendTcp(EncodeMark(1));
  EXPECT_TRUE(Fails());
}

TEST_F(LiarTest, ComesBackBeforeTheMove) {
  SendTcp(std::string(1, '\0'));
  Send(Packet::Kind::kBegin, 1);
  SendTcp(EncodeMark(0));
  EXPECT_TRUE(Fails());
}

TEST_F(LiarTest, MovesAheadOfTcpAndFillsTheWindow) {
  Send(Packet::Kind::kBegin, 1);  // byte 0 never comes over TCP
  const std::string block(32 * 1024, 'x');
  uint64_t offset = 1;
  for (; !Fails() && offset < 2 * kWindowBytes; offset += block.size()) {
    Send(Packet::Kind::kBytes, offset, block);
  }
  EXPECT_TRUE(Fails());
  EXPECT_LE(offset, kWindowBytes + 2 * block.size());
}

// Sends more than the window while the victim's program reads nothing.
TEST_F(LiarTest, SendsOnBeyondTheWindow) {
  Send(Packet::Kind::kBegin, 0);
  const std::string block(32 * 1024, 'x');
  uint64_t sent = 0;
  for (; !Fails() && sent < kWindowBytes + (1 << 20); sent += block.size()) {
    Packet packet;
    packet.kind = Packet::Kind::kBytes;
    packet.offset = sent;
    const std::string text = EncodeHead(packet) + block;
    liar_->Send({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    victim().stream.Poll();
  }
  EXPECT_TRUE(Fails());
  EXPECT_EQ(sent, kWindowBytes + block.size()) << "the whole window is usable";
}

// Returns the memory for the bytes that the victim's program has not read.
size_t MemoryFor(const memory::Payload& payload) {
  constexpr size_t kPerPiece = 150;  // the entry of the list, and the owner
  return payload.size() + kPerPiece * payload.pieces().size();
}

TEST_F(LiarTest, ManyTinyPacketsNeedLittleMemory) {
  constexpr size_t kPackets = 20000;
  Send(Packet::Kind::kBegin, 0);
  for (size_t i = 0; i < kPackets; ++i) {
    const std::string byte(1, victim().ByteAt(i));
    Packet packet;
    packet.kind = Packet::Kind::kBytes;
    packet.offset = i;
    const std::string text = EncodeHead(packet) + byte;
    liar_->Send({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    victim().stream.Poll();
  }
  ASSERT_FALSE(Fails());
  const memory::Payload kept = victim().stream.Take();
  EXPECT_EQ(kept.size(), kPackets);
  EXPECT_LT(MemoryFor(kept), 2 * kPackets);
  victim().Check(TextOf(kept));
  EXPECT_TRUE(victim().status.ok()) << victim().status;
}

// Byte 0 comes over TCP only after the packets.
TEST_F(LiarTest, ManyTinyPacketsBeforeTheMoveNeedLittleMemory) {
  constexpr size_t kPackets = 20000;
  Send(Packet::Kind::kBegin, 1);
  for (size_t i = 1; i <= kPackets; ++i) {
    Send(Packet::Kind::kBytes, i, std::string(1, victim().ByteAt(i)));
  }
  ASSERT_FALSE(Fails());
  victim().stream.OnTcp(BytesOf(std::string(1, victim().ByteAt(0))));
  const memory::Payload kept = victim().stream.Take();
  EXPECT_EQ(kept.size(), kPackets + 1);
  EXPECT_LT(MemoryFor(kept), 2 * kPackets);
  victim().Check(TextOf(kept));
  EXPECT_TRUE(victim().status.ok()) << victim().status;
}

TEST_F(LiarTest, MovesAndNeverSends) {
  Send(Packet::Kind::kBegin, 0);
  EXPECT_FALSE(Fails());
  liar_.reset();
  victim().Send(10);
  victim().Poll();
  EXPECT_FALSE(victim().stream.on_path());
  EXPECT_EQ(victim().tcp.size(), kMarkBytes + 10);
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
