#include "transport/grpc/write_burst.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace penstock {
namespace core {
namespace {

constexpr size_t kShort = 100;

class WriteBurstTest : public testing::Test {
 protected:
  // Adds short writes that follow each other after `gap`. Returns the number of
  // writes that had to leave immediately.
  int Write(int count, absl::Duration gap = WriteBurst::Gap() / 2) {
    int immediate = 0;
    for (int i = 0; i < count; ++i) {
      now_ += gap;
      if (burst_.MayWait(kShort, received_, now_)) continue;
      ++immediate;
      now_ += absl::Microseconds(8);  // the system call
      burst_.EndWrite(now_);
    }
    return immediate;
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  uint64_t received_ = 0;
  WriteBurst burst_;
};

TEST_F(WriteBurstTest, CloseWritesWaitAfterAFew) {
  const int immediate = Write(1000);
  EXPECT_GE(immediate, WriteBurst::kLead);
  EXPECT_LT(immediate, 2 * WriteBurst::kLead);
}

TEST_F(WriteBurstTest, ProgramThatComputesWritesImmediately) {
  EXPECT_EQ(Write(1000, WriteBurst::Gap()), 1000);
}

TEST_F(WriteBurstTest, WriteAfterAGapLeavesImmediatelyAndTheBurstGoesOn) {
  Write(100);
  EXPECT_EQ(Write(1, WriteBurst::Gap()), 1);
  EXPECT_EQ(Write(20), 0);
}

TEST_F(WriteBurstTest, SeveralGapsEndTheBurst) {
  Write(100);
  EXPECT_EQ(Write(3, WriteBurst::Gap()), 3);
  EXPECT_GT(Write(20), 10);
}

// Tests clients and servers of unary calls, with few and with many calls at a
// time, whose answers come one by one or all together.
TEST_F(WriteBurstTest, UnaryCallsNeverHaveABurst) {
  for (const int calls : {1, 16, 64, 250}) {
    for (int i = 0; i < 100; ++i) {
      received_ += calls;
      EXPECT_EQ(Write(calls), calls) << calls << " at a time, round " << i;
    }
  }
}

TEST_F(WriteBurstTest, PacketsOfAReceiverDoNotEndABurst) {
  Write(100);
  for (int i = 0; i < 100; ++i) {
    ++received_;
    EXPECT_EQ(Write(8), 0);
  }
}

TEST_F(WriteBurstTest, StreamAfterManyCallsHasABurst) {
  received_ += 1000 * 1000;
  EXPECT_LT(Write(10 * 1000), 300);
}

TEST_F(WriteBurstTest, CallsAfterAStreamEndTheBurst) {
  Write(10 * 1000);
  received_ += 16;
  Write(16);
  received_ += 16;
  EXPECT_EQ(Write(16), 16);
}

TEST_F(WriteBurstTest, FullWriteLeavesImmediately) {
  Write(100);
  EXPECT_TRUE(burst_.MayWait(WriteBurst::kMostBytes - 1, received_, now_));
  EXPECT_FALSE(burst_.MayWait(WriteBurst::kMostBytes, received_, now_));
  EXPECT_TRUE(burst_.MayWait(kShort, received_, now_)) << "the burst goes on";
}

}  // namespace
}  // namespace core
}  // namespace penstock
