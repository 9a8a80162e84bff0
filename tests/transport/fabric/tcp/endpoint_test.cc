// Tests the units that an endpoint writes, and when it writes them.

#include "transport/fabric/tcp/endpoint.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/tcp/tcp_test_util.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace fabric {
namespace tcp {
namespace {

constexpr size_t kQueueLimit = 256 * 1024;

TEST_F(TcpEndpointTest, LonePacketIsWrittenAtOnce) {
  EXPECT_TRUE(endpoint_->idle());
  ASSERT_TRUE(Send("abc"));
  EXPECT_TRUE(pipe_.writing());
  EXPECT_FALSE(endpoint_->idle());
  EXPECT_EQ(ToHex(TakeWrite()),
            ToHex(FromHex("03000000 01000000 0000000000000000 616263")));
  EXPECT_TRUE(endpoint_->idle());
  EXPECT_EQ(pipe_.writes(), 1);
  EXPECT_EQ(events_.Take(), Lines{});
}

TEST_F(TcpEndpointTest, ReadIsTheRequestOfTheDocument) {
  std::string into(256 * 1024, '.');
  const absl::Span<uint8_t> span(reinterpret_cast<uint8_t*>(&into[0]),
                                 into.size());
  const RemotePart part{9, 0, 1024 * 1024};
  endpoint_->Read(part, 0, span, 100);
  (void)TakeWrite();
  endpoint_->Read(part, 256 * 1024, span, 101);
  EXPECT_EQ(ToHex(TakeWrite()),
            ToHex(FromHex("14000000 03000000 0200000000000000"
                          "0900000000000000 0000040000000000 00000400")));
}

TEST_F(TcpEndpointTest, SmallUnitsThatWaitLeaveInOneWriteAndInOrder) {
  ASSERT_NO_FATAL_FAILURE(BeginWrite());
  std::string into(10, '.');
  ASSERT_TRUE(Send("a"));
  endpoint_->RingDoorbell();
  Read(&into, 1);
  ASSERT_TRUE(Send(""));
  ASSERT_TRUE(Send("b"));
  EXPECT_EQ(pipe_.writes(), 1);
  (void)TakeWrite();
  EXPECT_EQ(pipe_.writes(), 2);
  // Expects a single piece. One system call copies it, regardless of the number
  // of units.
  EXPECT_EQ(pipe_.left().size(), 1u);
  const std::vector<Unit> units = SplitUnits(TakeWrite());
  ASSERT_EQ(units.size(), 5u);
  EXPECT_EQ(units[0].body, "a");
  EXPECT_EQ(units[1].header.type, UnitType::kDoorbell);
  EXPECT_EQ(units[2].header.type, UnitType::kRead);
  EXPECT_EQ(units[3].body, "");
  EXPECT_EQ(units[4].body, "b");
  EXPECT_FALSE(pipe_.writing());
}

TEST_F(TcpEndpointTest, WriteUnderWayStaysTheSameWhileMoreIsSent) {
  ASSERT_NO_FATAL_FAILURE(BeginWrite());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Send("more"));
  EXPECT_EQ(SplitUnits(TakeWrite()).size(), 1u);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Send("still more"));
  EXPECT_EQ(SplitUnits(TakeWrite()).size(), 100u);
  EXPECT_EQ(SplitUnits(TakeWrites()).size(), 100u);
}

// Tests packets of a burst, which the stream holds back for a common write.
TEST_F(TcpEndpointTest, HeldPacketsLeaveInOneWriteAndInOrder) {
  pipe_.holds = true;
  for (const char* packet : {"one", "two", "three"}) {
    EXPECT_TRUE(endpoint_->Send(AsSpan(packet)));
  }
  EXPECT_EQ(pipe_.writes(), 0);
  EXPECT_FALSE(endpoint_->idle()) << "the session must not end the connection";
  endpoint_->WriteQueued(/*may_wait=*/false);
  const std::vector<Unit> units = SplitUnits(TakeWrite());
  ASSERT_EQ(units.size(), 3u);
  EXPECT_EQ(units[0].body, "one");
  EXPECT_EQ(units[2].body, "three");
  endpoint_->WriteQueued(/*may_wait=*/false);
  EXPECT_EQ(pipe_.writes(), 1) << "there is nothing to write";
}

TEST_F(TcpEndpointTest, PacketThatIsNotHeldTakesHeldOnesAlong) {
  pipe_.holds = true;
  EXPECT_TRUE(endpoint_->Send(AsSpan("one")));
  pipe_.holds = false;
  EXPECT_TRUE(endpoint_->Send(AsSpan("two")));
  EXPECT_EQ(SplitUnits(TakeWrite()).size(), 2u);
}

TEST_F(TcpEndpointTest, DoorbellIsNotHeld) {
  pipe_.holds = true;
  endpoint_->RingDoorbell();
  EXPECT_EQ(pipe_.writes(), 1);
}

TEST_F(TcpEndpointTest, PacketThatWaitedForAWriteIsNotHeldAfterIt) {
  ASSERT_NO_FATAL_FAILURE(BeginWrite());
  EXPECT_TRUE(endpoint_->Send(AsSpan("two")));
  pipe_.holds = true;
  (void)TakeWrite();
  EXPECT_EQ(SplitUnits(TakeWrite()).size(), 1u);
}

TEST_F(TcpEndpointTest, ServedReadTakesHeldPacketsAlong) {
  const RemotePart part = Expose("message");
  pipe_.holds = true;
  EXPECT_TRUE(endpoint_->Send(AsSpan("one")));
  Receive(MakeRead(7, {part.key, part.offset, 5}));
  const std::vector<Unit> units = SplitUnits(TakeWrite());
  ASSERT_EQ(units.size(), 2u);
  EXPECT_EQ(units[0].body, "one");
  EXPECT_EQ(units[1].header.type, UnitType::kReadData);
}

TEST_F(TcpEndpointTest, StreamLearnsHowManyPacketsWereReceived) {
  pipe_.holds = true;
  Receive(MakeUnit(UnitType::kPacket, 0, "one") +
          MakeUnit(UnitType::kPacket, 0, "two"));
  EXPECT_TRUE(endpoint_->Send(AsSpan("three")));
  EXPECT_EQ(pipe_.received(), 2u);
}

// Tests the limit of the queue. If the queue were longer, the session could not
// merge packets that are already queued.
TEST_F(TcpEndpointTest, QueueOf256KiBTakesNoMorePackets) {
  ASSERT_NO_FATAL_FAILURE(BeginWrite());
  const std::string packet(1000, 'm');
  size_t queued = 0;
  while (queued < 2 * kQueueLimit && Send(packet)) {
    queued += kUnitHeaderBytes + packet.size();
  }
  EXPECT_GT(queued, kQueueLimit);
  EXPECT_LE(queued, kQueueLimit + kUnitHeaderBytes + packet.size());
  EXPECT_FALSE(Send(""));
  EXPECT_EQ(events_.Take(), Lines{});
  (void)TakeWrite();
  EXPECT_EQ(events_.Take(), Lines{"writable"});
  EXPECT_TRUE(Send("goes again"));
  const std::string rest = TakeWrites();
  EXPECT_EQ(rest.size(), queued + kUnitHeaderBytes + 10);
  EXPECT_EQ(events_.Take(), Lines{});
}

TEST_F(TcpEndpointTest, WriteUnderWayIsNotPartOfTheQueue) {
  ASSERT_TRUE(Send(std::string(kMaxPacketBytes, 'm')));
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(Send(std::string(kMaxPacketBytes - kUnitHeaderBytes, 'm')));
  }
  EXPECT_TRUE(Send("at the limit"));
  EXPECT_FALSE(Send("above it"));
}

TEST_F(TcpEndpointTest, DoorbellsThatWaitAreOne) {
  ASSERT_NO_FATAL_FAILURE(BeginWrite());
  for (int i = 0; i < 10; ++i) endpoint_->RingDoorbell();
  (void)TakeWrite();
  EXPECT_EQ(ToHex(TakeWrite()),
            ToHex(FromHex("00000000 02000000 0000000000000000")));
  EXPECT_FALSE(pipe_.writing());
}

// Rings again while the first doorbell is being written. Otherwise the peer
// would sleep although more data was sent after the first doorbell.
TEST_F(TcpEndpointTest, DoorbellAfterOneThatIsBeingWrittenIsAnother) {
  endpoint_->RingDoorbell();
  ASSERT_TRUE(pipe_.writing());
  endpoint_->RingDoorbell();
  endpoint_->RingDoorbell();
  EXPECT_EQ(SplitUnits(TakeWrites()).size(), 2u);
  endpoint_->RingDoorbell();
  EXPECT_EQ(SplitUnits(TakeWrites()).size(), 1u);
}

TEST_F(TcpEndpointTest, CapabilitiesAreThoseOfALifeline) {
  const Capabilities& capabilities = endpoint_->capabilities();
  EXPECT_EQ(capabilities.max_packet_bytes, 64u * 1024);
  EXPECT_EQ(capabilities.eager_max_bytes, 2 * wire::kMaxFramePayload);
  EXPECT_EQ(capabilities.read_chunk_bytes, 256u * 1024);
  EXPECT_EQ(capabilities.push_bytes, 256u * 1024);
  EXPECT_EQ(capabilities.max_read_bytes(), 1024u * 1024);
  EXPECT_EQ(capabilities.max_reads, 4);
  EXPECT_TRUE(capabilities.is_lifeline);
  EXPECT_FALSE(capabilities.can_load);
}

TEST_F(TcpEndpointTest, EndOfTheStreamEndsReadsThenTheEndpoint) {
  std::string into(10, '.');
  Read(&into, 1);
  Read(&into, 2);
  endpoint_->Break(absl::UnavailableError("gone"));
  EXPECT_EQ(events_.Take(),
            (Lines{"read 1 failed", "read 2 failed", "broken"}));
  EXPECT_EQ(events_.cause(), absl::UnavailableError("gone"));
  endpoint_->Break(absl::UnavailableError("gone again"));
  EXPECT_EQ(events_.Take(), Lines{});
}

TEST_F(TcpEndpointTest, NothingIsWrittenAfterTheEnd) {
  const RemotePart part = Expose("some bytes");
  ASSERT_NO_FATAL_FAILURE(BeginWrite());
  ASSERT_TRUE(Send("queued, and lost"));
  endpoint_->Break(absl::UnavailableError("gone"));
  (void)events_.Take();
  (void)TakeWrite();
  Send("late");
  endpoint_->RingDoorbell();
  Receive(MakeRead(1, {part.key, 0, 10}));
  std::string into(10, '.');
  Read(&into, 3);
  EXPECT_EQ(events_.Take(), Lines{"read 3 failed"});
  EXPECT_FALSE(pipe_.writing());
  EXPECT_EQ(pipe_.writes(), 1);
}

}  // namespace
}  // namespace tcp
}  // namespace fabric
}  // namespace penstock
