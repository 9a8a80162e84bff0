#include "transport/protocol/stream_window.h"

#include <cstdint>
#include <deque>

#include "gtest/gtest.h"

namespace penstock {
namespace protocol {
namespace {

TEST(MessageCost, EmptyMessagesCostToo) {
  EXPECT_EQ(kMessageOverhead, 64u);  // this is part of the protocol
  EXPECT_EQ(MessageCost(0), 64u);
  EXPECT_EQ(MessageCost(1000), 1064u);
}

TEST(SendWindow, ClosesWhenAWindowIsUnderWay) {
  SendWindow window(100);
  EXPECT_TRUE(window.open());
  window.Use(99);
  EXPECT_TRUE(window.open());
  window.Use(1);
  EXPECT_FALSE(window.open());
  window.GiveBack(1);
  EXPECT_TRUE(window.open());
}

TEST(SendWindow, MessageLargerThanTheWindowPasses) {
  SendWindow window(100);
  window.Use(1000 * 1000);
  EXPECT_FALSE(window.open());
  window.GiveBack(999 * 1000);
  EXPECT_FALSE(window.open());
  window.GiveBack(1000);
  EXPECT_TRUE(window.open());
}

TEST(SendWindow, GivingBackMoreThanWasTakenGainsNothing) {
  SendWindow window(100);
  window.Use(10);
  window.GiveBack(~uint64_t{0});
  window.Use(100);
  EXPECT_FALSE(window.open());
}

TEST(ReceiveWindow, GivesBackInQuarters) {
  ReceiveWindow window(400);
  EXPECT_EQ(window.Consume(60), 0u);
  EXPECT_EQ(window.Consume(39), 0u);
  EXPECT_EQ(window.Consume(1), 100u);
  EXPECT_EQ(window.Consume(99), 0u);
  EXPECT_EQ(window.Consume(500), 599u);
}

TEST(ReceiveWindow, TinyWindowGivesBackAtOnce) {
  ReceiveWindow window(3);
  EXPECT_EQ(window.Consume(1), 1u);
}

// Tests both sides together, with credit that takes time. For any sizes, all
// messages must pass, and the bytes in flight must stay below the window plus
// one message.
TEST(StreamWindows, NeverDeadlockAndStayBounded) {
  for (uint64_t window : {64, 100, 1000, 65536}) {
    for (uint64_t bytes : {0, 1, 50, 63, 700, 100000}) {
      SendWindow sender(window);
      ReceiveWindow receiver(window);
      const uint64_t cost = MessageCost(bytes);
      std::deque<uint64_t> under_way;
      uint64_t sum = 0;
      for (int sent = 0; sent < 500;) {
        if (sender.open()) {
          sender.Use(cost);
          under_way.push_back(cost);
          sum += cost;
          ++sent;
          ASSERT_LT(sum, window + cost + window / 4 + cost);
          continue;
        }
        ASSERT_FALSE(under_way.empty()) << window << " " << bytes;
        const uint64_t credit = receiver.Consume(under_way.front());
        sum -= under_way.front();
        under_way.pop_front();
        sender.GiveBack(credit);
      }
    }
  }
}

}  // namespace
}  // namespace protocol
}  // namespace penstock
