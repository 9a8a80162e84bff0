#include "transport/fabric/shm/ring.h"

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/ring_test_util.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

TEST_F(RingTest, PacketsOfAllSizesComeOutInOrderAcrossTheWrap) {
  for (size_t round = 0; round < 40; ++round) {
    std::vector<std::string> sent;
    for (size_t size : {0, 1, 3, 4, 5, 12, 1000, 65536}) {
      sent.emplace_back((size + round * 97) % 65537, static_cast<char>(round));
      ASSERT_EQ(Send(sent.back()), Sent::kSent);
    }
    for (const std::string& expected : sent) {
      std::string got;
      ASSERT_EQ(Receive(&got), Got::kPacket);
      ASSERT_EQ(got, expected);
    }
    std::string none;
    ASSERT_EQ(Receive(&none), Got::kEmpty);
  }
}

TEST_F(RingTest, FullRingTakesNothingUntilThereIsRoomForWhatWasRefused) {
  GrowRing();
  const std::string packet(30000, 'm');
  int count = 0;
  while (Send(packet) == Sent::kSent) ++count;
  EXPECT_EQ(count, 4);
  EXPECT_FALSE(sender_.RoomHasCome());
  EXPECT_TRUE(receiver_.PeerWaits());
  std::string got;
  ASSERT_EQ(Receive(&got), Got::kPacket);
  EXPECT_TRUE(sender_.RoomHasCome());
  // Sends a smaller packet, for which there is room in the meantime. The sender
  // must still wait for the room of the larger packet.
  EXPECT_EQ(Send("small"), Sent::kSent);
  EXPECT_TRUE(receiver_.PeerWaits());
  sender_.StopWaiting();
  EXPECT_FALSE(sender_.RoomHasCome());
  EXPECT_FALSE(receiver_.PeerWaits());
}

TEST_F(RingTest, RingIsFilledToTheLastByte) {
  GrowRing();
  // A packet that takes 1024 bytes including its header.
  const std::string packet(1016, 'm');
  for (uint32_t i = 0; i < kRingBytes / 1024; ++i) {
    ASSERT_EQ(Send(packet), Sent::kSent);
  }
  EXPECT_EQ(Send(""), Sent::kFull);
  std::string got;
  for (uint32_t i = 0; i < kRingBytes / 1024; ++i) {
    ASSERT_EQ(Receive(&got), Got::kPacket);
    ASSERT_EQ(got, packet);
  }
  EXPECT_EQ(Receive(&got), Got::kEmpty);
}

TEST_F(RingTest, FirstPartIsFilledToTheLastByteAndIsAllThatIsAllocated) {
  const std::string packet(1016, 'm');
  std::string got;
  for (int round = 0; round < 100; ++round) {
    for (uint32_t i = 0; i < kFirstRingBytes / 1024; ++i) {
      ASSERT_EQ(Send(packet), Sent::kSent);
    }
    for (uint32_t i = 0; i < kFirstRingBytes / 1024; ++i) {
      ASSERT_EQ(Receive(&got), Got::kPacket);
    }
  }
  EXPECT_EQ(AllocatedBytes(), kRingOffset + kFirstRingBytes);
}

TEST_F(RingTest, RingThatIsFullGrowsAndLosesNothingWhereverItStands) {
  // Lets the ring grow at different positions of its head. The positions cover
  // all of the larger ring.
  for (uint64_t start = 0; start < 2 * kRingBytes; start += 8 * 263) {
    Fresh fresh;
    std::string got;
    for (uint64_t at = 0; at < start; at += 8) {
      ASSERT_EQ(fresh.Send(""), Sent::kSent);
      ASSERT_EQ(fresh.Receive(&got), Got::kPacket);
    }
    uint32_t sent = 0;
    auto text = [](uint32_t i) {
      return std::string(997 + i % 50, static_cast<char>('a' + i % 26));
    };
    auto fill = [&] {
      while (sent < 300 && fresh.Send(text(sent)) == Sent::kSent) ++sent;
    };
    fill();
    ASSERT_GE(sent, kFirstRingBytes / 1024 - 2) << start;
    for (uint32_t i = 0; i < sent; ++i) {
      ASSERT_EQ(fresh.Receive(&got), Got::kPacket) << start << " " << i;
      ASSERT_EQ(got, text(i)) << start << " " << i;
      fill();  // the packets fill the larger ring at the end
    }
    EXPECT_EQ(sent, 300u);
    EXPECT_EQ(fresh.Receive(&got), Got::kEmpty);
    EXPECT_EQ(fresh.AllocatedBytes(), kRingOffset + kRingBytes);
  }
}

TEST_F(RingTest, RingThatHasNoRoomToGrowSaysWhenItHas) {
  const std::string small(1016, 'm');
  const std::string large(60000, 'x');
  while (Send(small) == Sent::kSent) {
  }
  sender_.StopWaiting();
  EXPECT_EQ(Send(large), Sent::kFull);
  // Takes packets until the ring's first part is empty. Only then can the ring
  // grow, because the head is at the part's end.
  std::string got;
  for (uint32_t i = 0; i < kFirstRingBytes / 1024; ++i) {
    EXPECT_FALSE(sender_.RoomHasCome()) << i;
    EXPECT_TRUE(receiver_.PeerWaits()) << i;
    ASSERT_EQ(Receive(&got), Got::kPacket);
  }
  EXPECT_TRUE(sender_.RoomHasCome());
  EXPECT_EQ(Send(large), Sent::kSent);
  ASSERT_EQ(Receive(&got), Got::kPacket);
  EXPECT_EQ(got, large);
}

TEST_F(RingTest, RingThatWasFullGrowsWithTheNextPacketThatHasRoomForIt) {
  const std::string packet(1016, 'm');
  uint32_t sent = 0;
  while (Send(packet) == Sent::kSent) ++sent;
  sender_.StopWaiting();
  EXPECT_EQ(AllocatedBytes(), kRingOffset + kFirstRingBytes);
  std::string got;
  for (; sent > 0; --sent) ASSERT_EQ(Receive(&got), Got::kPacket);
  EXPECT_EQ(Send("small"), Sent::kSent);
  EXPECT_EQ(AllocatedBytes(), kRingOffset + kRingBytes);
  ASSERT_EQ(Receive(&got), Got::kPacket);
  EXPECT_EQ(got, "small");
}

TEST_F(RingTest, HostileGrowthBreaks) {
  std::string got;
  WriteLength(kGrown);
  // Claims a head that does not reach the new part.
  PageOf(writer_)->head.store(kFirstRingBytes - 8);
  EXPECT_EQ(Receive(&got), Got::kBroken);
  PageOf(writer_)->head.store(kFirstRingBytes);
  EXPECT_EQ(Receive(&got), Got::kEmpty);  // up to here, the peer was honest
  WriteLength(kGrown, kFirstRingBytes);
  PageOf(writer_)->head.store(2 * kFirstRingBytes);
  EXPECT_EQ(Receive(&got), Got::kBroken);  // the ring must not grow twice
}

// Tests a packet beyond the allocated part of the ring, which the reader must
// not read.
TEST_F(RingTest, PacketBeyondThePartThatIsInUseBreaks) {
  std::string got;
  WriteLength(kFirstRingBytes);
  PageOf(writer_)->head.store(kFirstRingBytes + 8);
  EXPECT_EQ(Receive(&got), Got::kBroken);
}

TEST_F(RingTest, PeerThatSaysItHasGrownAndHasNotHarmsNobody) {
  WriteLength(kGrown);
  PageOf(writer_)->head.store(kFirstRingBytes + 60008);
  ASSERT_EQ(AllocatedBytes(), kRingOffset + kFirstRingBytes);
  std::string got;
  // Expects a broken ring: the reader has created the new part, which has zeros
  // and no packet.
  EXPECT_EQ(Receive(&got), Got::kBroken);
  EXPECT_EQ(AllocatedBytes(), kRingOffset + kRingBytes);
  WriteLength(60008, kFirstRingBytes);
  // Expects a broken ring: the packet ends beyond the head.
  EXPECT_EQ(Receive(&got), Got::kBroken);
}

TEST_F(RingTest, HostileHeadBreaks) {
  std::string got;
  for (uint64_t head : {uint64_t{kRingBytes} + 8, uint64_t{4}, uint64_t{7},
                        ~uint64_t{0}, uint64_t{1} << 63}) {
    PageOf(writer_)->head.store(head);
    EXPECT_TRUE(receiver_.HasInput());
    EXPECT_EQ(Receive(&got), Got::kBroken) << head;
  }
}

TEST_F(RingTest, HostileLengthBreaks) {
  PageOf(writer_)->head.store(1024);
  std::string got;
  for (uint32_t length :
       {1017u, 65537u, 0x7fffffffu, 0xfffffffeu, 0xfffffffcu}) {
    WriteLength(length);
    EXPECT_EQ(Receive(&got), Got::kBroken) << length;
  }
  WriteLength(1016);
  EXPECT_EQ(Receive(&got), Got::kPacket);
}

TEST_F(RingTest, HostileTailBreaksOnceItIsLookedAt) {
  GrowRing();
  const std::string packet(60000, 'm');
  ASSERT_EQ(Send(packet), Sent::kSent);
  ASSERT_EQ(Send(packet), Sent::kSent);
  for (uint64_t tail :
       {uint64_t{1} << 40, uint64_t{200000}, uint64_t{1} << 63}) {
    PageOf(reader_)->tail.store(tail);
    EXPECT_EQ(Send(packet), Sent::kBroken) << tail;
    EXPECT_EQ(Send(packet), Sent::kBroken) << tail;
  }
}

TEST_F(RingTest, TwoThreadsLoseNothing) {
  constexpr uint32_t kPackets = 200000;
  std::thread writer([this] {
    for (uint32_t i = 0; i < kPackets; ++i) {
      std::string packet(4 + i % 3000, 'x');
      std::memcpy(&packet[0], &i, sizeof i);
      while (Send(packet) != Sent::kSent) std::this_thread::yield();
    }
  });
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < kPackets;) {
    std::string got;
    if (Receive(&got) != Got::kPacket) {
      std::this_thread::yield();
      continue;
    }
    uint32_t number = 0;
    std::memcpy(&number, got.data(), sizeof number);
    if (number != i || got.size() != 4 + i % 3000) ++wrong;
    ++i;
  }
  writer.join();
  EXPECT_EQ(wrong, 0u);
}

TEST(Control, RingSizesAreBoundedPowersOfTwo) {
  EXPECT_TRUE(IsRingSize(128 * 1024));
  EXPECT_TRUE(IsRingSize(1024 * 1024));
  for (uint64_t size : {uint64_t{0}, uint64_t{64} << 10, uint64_t{200000},
                        uint64_t{2} << 20, uint64_t{1} << 63}) {
    EXPECT_FALSE(IsRingSize(size)) << size;
  }
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
