#include "transport/base/fifo.h"

#include <deque>
#include <memory>
#include <random>
#include <utility>

#include "gtest/gtest.h"

namespace penstock {
namespace base {
namespace {

TEST(Fifo, FirstInFirstOut) {
  Fifo<int> fifo;
  EXPECT_TRUE(fifo.empty());
  for (int i = 0; i < 5; ++i) fifo.push_back(i);
  EXPECT_EQ(fifo.size(), 5u);
  EXPECT_EQ(fifo.front(), 0);
  EXPECT_EQ(fifo.back(), 4);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(fifo.pop_front(), i);
  EXPECT_TRUE(fifo.empty());
}

TEST(Fifo, PoppedItemsAreLetGoAtOnce) {
  Fifo<std::shared_ptr<int>> fifo;
  auto item = std::make_shared<int>(1);
  fifo.push_back(item);
  fifo.push_back(std::make_shared<int>(2));
  fifo.pop_front();
  EXPECT_EQ(item.use_count(), 1);
  fifo.push_back(item);
  fifo.clear();
  EXPECT_EQ(item.use_count(), 1);
  EXPECT_TRUE(fifo.empty());
}

TEST(Fifo, MemoryIsBoundedByWhatWaits) {
  Fifo<int> fifo;
  fifo.push_back(0);
  // Never empties the queue, so that it is never cleared as a whole.
  for (int i = 1; i < 100000; ++i) {
    fifo.push_back(i);
    ASSERT_EQ(fifo.pop_front(), i - 1);
  }
  const int* const begin = &fifo.front();
  fifo.push_back(1);
  EXPECT_LT(&fifo.back() - begin, 64);
}

TEST(Fifo, MovesWithItsItems) {
  Fifo<std::unique_ptr<int>, 2> fifo;
  for (int i = 0; i < 5; ++i) fifo.push_back(std::make_unique<int>(i));
  fifo.pop_front();
  Fifo<std::unique_ptr<int>, 2> other = std::move(fifo);
  EXPECT_EQ(other.size(), 4u);
  EXPECT_EQ(*other.pop_front(), 1);
}

TEST(Fifo, BehavesAsADeque) {
  std::mt19937 random(3);
  Fifo<int, 3> fifo;
  std::deque<int> reference;
  for (int i = 0; i < 20000; ++i) {
    // Adds more often than it removes for 1,000 steps, then removes more often
    // for 1,000 steps, and so on.
    if (random() % 10 < (i / 1000 % 2 == 0 ? 6 : 4)) {
      fifo.push_back(i);
      reference.push_back(i);
    } else if (!reference.empty()) {
      ASSERT_EQ(fifo.pop_front(), reference.front());
      reference.pop_front();
    }
    ASSERT_EQ(fifo.size(), reference.size());
    ASSERT_EQ(fifo.end() - fifo.begin(), static_cast<long>(reference.size()));
    if (!reference.empty()) {
      ASSERT_EQ(fifo.front(), reference.front());
      ASSERT_EQ(fifo.back(), reference.back());
    }
  }
}

}  // namespace
}  // namespace base
}  // namespace penstock
