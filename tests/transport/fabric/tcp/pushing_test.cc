// Tests an endpoint that sends the first chunk of a region before the peer asks
// for it.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/tcp/tcp_test_util.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/fabric/tcp/endpoint.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace tcp {
namespace {

constexpr uint64_t kPushed = uint64_t{1} << 63;

class TcpPushing : public TcpEndpointTest {
 protected:
  RemoteRegion ExposeToPush(absl::string_view bytes) {
    memory::Block block = memory::AllocateBlock(bytes.size()).value();
    bytes.copy(reinterpret_cast<char*>(block.data.get()), bytes.size());
    return endpoint_->ExposeToPush(memory::Payload(block.AsBytes()))
        .value()
        .region;
  }
  // Reads from the peer's region `number`, which the peer will push.
  void ReadOf(uint64_t number, uint64_t length, uint64_t offset,
              std::string* into, uint64_t cookie) {
    endpoint_->Read(RemotePart{number | kPushed, 0, length}, offset,
                    {reinterpret_cast<uint8_t*>(&(*into)[0]), into->size()},
                    cookie);
  }
  static std::string Push(uint64_t number, absl::string_view bytes) {
    return MakeUnit(UnitType::kPush, number | kPushed, bytes);
  }
  static std::string Void(uint64_t number) {
    return MakeUnit(UnitType::kPushVoid, number | kPushed, "");
  }
};

TEST_F(TcpPushing, DeviceMemoryIsCopiedOrThePushIsVoid) {
  memory::FakeDeviceAccess device;
  for (const bool fails : {false, true}) {
    if (fails) device.FailCopies(absl::InternalError("illegal address"));
    endpoint_->BeginBatch();
    const RemoteRegion region =
        endpoint_->ExposeToPush(memory::Payload(device.Put("on the device")))
            .value()
            .region;
    endpoint_->Push(region);
    endpoint_->EndBatch();
    const std::vector<Unit> units = SplitUnits(TakeWrites());
    ASSERT_EQ(units.size(), 1u);
    EXPECT_EQ(units[0].header.type,
              fails ? UnitType::kPushVoid : UnitType::kPush);
    EXPECT_EQ(units[0].header.cookie, region[0].key);
    EXPECT_EQ(units[0].body, fails ? "" : "on the device");
  }
}

TEST_F(TcpPushing, OwnerSendsTheFirstChunkBehindThePackets) {
  const std::string large(300 * 1024, 'x');
  endpoint_->BeginBatch();
  const RemoteRegion small = ExposeToPush("small");
  const RemoteRegion big = ExposeToPush(large);
  ASSERT_TRUE(Send("announcements"));
  endpoint_->Push(small);
  endpoint_->Push(big);
  endpoint_->EndBatch();
  const std::vector<Unit> units = SplitUnits(TakeWrites());
  ASSERT_EQ(units.size(), 3u);
  EXPECT_EQ(units[0].body, "announcements");
  EXPECT_EQ(units[1].header.type, UnitType::kPush);
  EXPECT_EQ(units[1].header.cookie, small[0].key);
  EXPECT_EQ(units[1].body, "small");
  EXPECT_EQ(units[2].header.cookie, big[0].key);
  EXPECT_TRUE(units[2].body == large.substr(0, 256 * 1024));
}

TEST_F(TcpPushing, WithdrawnBeforeItsPushIsSaidToBe) {
  const RemoteRegion region = ExposeToPush("gone");
  endpoint_->Withdraw(region);
  endpoint_->Push(region);
  const std::vector<Unit> units = SplitUnits(TakeWrites());
  ASSERT_EQ(units.size(), 1u);
  EXPECT_EQ(units[0].header.type, UnitType::kPushVoid);
  EXPECT_EQ(units[0].header.cookie, region[0].key);
}

TEST_F(TcpPushing, PacketWaitsForTwoChunksOfPushesAndNoMore) {
  ASSERT_NO_FATAL_FAILURE(BeginWrite());
  for (int i = 0; i < 8; ++i) {
    endpoint_->Push(ExposeToPush(std::string(256 * 1024, 'p')));
  }
  TakeWrite();
  ASSERT_TRUE(Send("urgent"));
  TakeWrite();  // two chunks that were already in flight
  EXPECT_EQ(SplitUnits(TakeWrite())[0].body, "urgent");
  EXPECT_FALSE(endpoint_->idle());
  TakeWrites();
  EXPECT_TRUE(endpoint_->idle());
}

TEST_F(TcpPushing, ReaderAsksForNothingAndGetsIt) {
  std::string into(5, '.');
  ReadOf(1, 5, 0, &into, 42);
  EXPECT_FALSE(pipe_.writing());
  // Delivers the unit in any pieces.
  const std::string unit = Push(1, "bytes");
  for (char byte : unit) Receive(std::string(1, byte));
  EXPECT_EQ(events_.Take(), Lines{"read 42 OK"});
  EXPECT_EQ(into, "bytes");
}

TEST_F(TcpPushing, PushThatNobodyWaitsForIsDroppedAndReadLater) {
  Receive(Push(1, "bytes"));
  EXPECT_TRUE(events_.Take().empty());
  std::string into(5, '.');
  ReadOf(1, 5, 0, &into, 42);
  const std::vector<Unit> units = SplitUnits(TakeWrites());
  ASSERT_EQ(units.size(), 1u);
  EXPECT_EQ(units[0].header.type, UnitType::kRead);
  Receive(MakeUnit(UnitType::kReadData, units[0].header.cookie, "bytes"));
  EXPECT_EQ(events_.Take(), Lines{"read 42 OK"});
}

// Tests a push for which no read waits, because the message was refused or its
// stream has ended. Reads of later messages must continue to wait.
TEST_F(TcpPushing, PushThatNobodyWaitsForLeavesLaterReadsWaiting) {
  std::string into(5, '-');
  ReadOf(2, 5, 0, &into, 6);
  Receive(Push(1, "unwanted"));
  EXPECT_EQ(events_.Take(), Lines());
  Receive(Push(2, "hello"));
  EXPECT_EQ(into, "hello");
  EXPECT_EQ(events_.Take(), Lines({"read 6 OK"}));
}

TEST_F(TcpPushing, ChunksBehindTheFirstAreAskedFor) {
  std::string into(44 * 1024, '.');
  ReadOf(1, 300 * 1024, 256 * 1024, &into, 1);
  EXPECT_EQ(SplitUnits(TakeWrites())[0].header.type, UnitType::kRead);
}

TEST_F(TcpPushing, ReadOfWhatWasWithdrawnFails) {
  std::string into(5, '.');
  ReadOf(3, 5, 0, &into, 42);
  Receive(Void(3));
  EXPECT_EQ(events_.Take(), Lines{"read 42 failed"});
}

TEST_F(TcpPushing, ReadsThatWaitEndWithTheStream) {
  std::string into(5, '.');
  ReadOf(1, 5, 0, &into, 42);
  endpoint_->Break(absl::UnavailableError("gone"));
  EXPECT_EQ(events_.Take(), (Lines{"read 42 failed", "broken"}));
}

// Tests pushes of a peer that breaks the rules.
TEST_F(TcpPushing, BadPushesBreakTheConnection) {
  const std::vector<std::string> bad = {
      Push(2, "bytes") + Push(2, "bytes"),  // the same region twice
      Push(2, "bytes") + Push(1, "bytes"),  // the regions are not in order
      MakeUnit(UnitType::kPush, 1, "no pushed region"),
      Void(2) + Void(1),
  };
  for (const std::string& bytes : bad) {
    NewEndpoint();
    Receive(bytes);
    EXPECT_EQ(events_.Take(), Lines{"broken"});
  }
}

TEST_F(TcpPushing, PushOfAnotherSizeThanTheReadBreaksTheConnection) {
  std::string into(5, '.');
  ReadOf(1, 5, 0, &into, 42);
  Receive(Push(1, "four"));
  EXPECT_EQ(events_.Take(), (Lines{"read 42 failed", "broken"}));
  EXPECT_EQ(into, ".....");
}

// Tests a peer that omits a push. Otherwise the read would wait forever.
TEST_F(TcpPushing, PushThatIsLeftOutBreaksTheConnection) {
  std::string into(5, '.');
  ReadOf(1, 5, 0, &into, 42);
  Receive(Push(2, "later"));
  EXPECT_EQ(events_.Take(), (Lines{"read 42 failed", "broken"}));
}

}  // namespace
}  // namespace tcp
}  // namespace fabric
}  // namespace penstock
