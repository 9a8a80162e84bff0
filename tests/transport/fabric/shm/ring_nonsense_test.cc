// Tests a ring whose shared words were overwritten. The ring must break, and
// must never yield a packet that was not sent.

#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/ring_test_util.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

TEST_F(RingTest, HeadBeyondWhatWasWrittenBreaks) {
  std::string got;
  // Sends more than the whole ring holds, so that every position in it has held
  // a packet.
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(Send(std::string(120, 'm')), Sent::kSent);
    ASSERT_EQ(Receive(&got), Got::kPacket);
  }
  ControlPage* const page = PageOf(writer_);
  const uint64_t head = page->head;
  for (uint64_t more = 8; more <= kFirstRingBytes; more += 8) {
    page->head = head + more;
    EXPECT_EQ(Receive(&got), Got::kBroken) << more;
  }
  // Sends a packet, which makes the word right again.
  ASSERT_EQ(Send("next"), Sent::kSent);
  EXPECT_EQ(Receive(&got), Got::kPacket);
  EXPECT_EQ(got, "next");
}

TEST_F(RingTest, TailThatIsNonsenseIsFoundWhereTheRingIsEmpty) {
  std::string got;
  ASSERT_EQ(Send("x"), Sent::kSent);
  ASSERT_EQ(Receive(&got), Got::kPacket);
  EXPECT_EQ(Receive(&got), Got::kEmpty);
  for (uint64_t tail : {uint64_t{0}, uint64_t{24}, ~uint64_t{0}}) {
    PageOf(reader_)->tail = tail;
    EXPECT_EQ(Receive(&got), Got::kBroken) << tail;
  }
}

// Tests a wrong tail, which makes the writer overwrite packets that were not
// read.
TEST_F(RingTest, WhatWasWrittenOverBreaks) {
  std::string got;
  const std::string packet(504, 'm');
  for (uint64_t unread = 1; unread <= kFirstRingBytes / 512; ++unread) {
    Fresh fresh;
    for (uint64_t i = 0; i < unread; ++i) {
      ASSERT_EQ(fresh.Send(packet), Sent::kSent);
    }
    PageOf(fresh.reader_)->tail = PageOf(fresh.writer_)->head.load();
    while (fresh.Send("over") == Sent::kSent) {
    }
    EXPECT_EQ(fresh.Receive(&got), Got::kBroken) << unread;
  }
}

// Writes nonsense to the shared words and to headers, at random. The ring must
// yield the next packet or break.
TEST_F(RingTest, NonsenseNeverPassesForAPacket) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    Fresh fresh;
    std::deque<std::string> sent;
    bool broken = false;
    for (int step = 0; step < 60 && !broken; ++step) {
      if (random() % 2 == 0) {
        std::string packet(random() % 3000, static_cast<char>(random()));
        const Sent result = fresh.Send(packet);
        broken = result == Sent::kBroken;
        if (result == Sent::kSent) sent.push_back(std::move(packet));
      }
      if (random() % 8 == 0) fresh.WriteNonsense(&random);
      std::string got;
      const Got result = random() % 2 == 0 ? Got::kEmpty : fresh.Receive(&got);
      broken |= result == Got::kBroken;
      if (result != Got::kPacket) continue;
      ASSERT_FALSE(sent.empty()) << "seed " << seed;
      ASSERT_EQ(got, sent.front()) << "seed " << seed;
      sent.pop_front();
    }
  }
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
