#include "transport/protocol/stepped_size.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace penstock {
namespace protocol {
namespace {

void Propose(SteppedSize* size, double wanted, int times) {
  for (int i = 0; i < times; ++i) size->Propose(wanted);
}

TEST(SteppedSizeTest, StepsAfterSeveralProposalsInARow) {
  SteppedSize size({100, 10, 1000});
  Propose(&size, 1000, SteppedSize::kInARow - 1);
  EXPECT_EQ(size.value(), 100u);
  size.Propose(1000);
  EXPECT_EQ(size.value(), 200u);
  Propose(&size, 10, SteppedSize::kInARow - 1);
  EXPECT_EQ(size.value(), 200u);
  size.Propose(10);
  EXPECT_EQ(size.value(), 100u);
}

TEST(SteppedSizeTest, OneProposalWithinTheMarginBeginsTheRowAnew) {
  SteppedSize size({100, 10, 1000});
  for (int i = 0; i < 50; ++i) {
    Propose(&size, i % 2 == 0 ? 1000 : 1, SteppedSize::kInARow - 1);
    size.Propose(100);
  }
  EXPECT_EQ(size.value(), 100u);
}

TEST(SteppedSizeTest, ProposalsOfBothSidesDoNotAddUp) {
  SteppedSize size({100, 10, 1000});
  for (int i = 0; i < 100; ++i) size.Propose(i % 4 == 0 ? 1 : 1000);
  EXPECT_EQ(size.value(), 100u);
}

TEST(SteppedSizeTest, StaysWithinTheMargin) {
  SteppedSize size({100, 10, 1000});
  Propose(&size, 100 * 1.67, 100);
  EXPECT_EQ(size.value(), 100u);
  Propose(&size, 100 / 1.67, 100);
  EXPECT_EQ(size.value(), 100u);
  Propose(&size, 100 * 1.69, 100);
  EXPECT_EQ(size.value(), 200u);
}

// Tests any wanted size. The final size must be right, and must stay if the
// wanted size changes by a tenth.
TEST(SteppedSizeTest, AStepIsNotTakenBack) {
  for (double wanted = 1; wanted < 100000; wanted *= 1.01) {
    SteppedSize size({1200, 100, 10000});
    Propose(&size, wanted, 100);
    const size_t reached = size.value();
    for (int i = 0; i < 5; ++i) {
      Propose(&size, wanted * 1.1, 20);
      Propose(&size, wanted / 1.1, 20);
    }
    const size_t value = size.value();
    Propose(&size, wanted * 1.1, 20);
    EXPECT_EQ(size.value(), value) << wanted;
    Propose(&size, wanted / 1.1, 20);
    EXPECT_EQ(size.value(), value) << wanted;
    EXPECT_LE(value, 2 * reached);
    EXPECT_GE(2 * value, reached);
  }
}

TEST(SteppedSizeTest, ReachesItsBoundsAndComesBackByTheSameSteps) {
  SteppedSize size({1200, 1000, 1600});
  Propose(&size, 1e300, 100);
  EXPECT_EQ(size.value(), 1600u);
  Propose(&size, 900, 8);
  EXPECT_EQ(size.value(), 1200u);
  Propose(&size, 0, 100);
  EXPECT_EQ(size.value(), 1000u);
  Propose(&size, 1e300, 8);
  EXPECT_EQ(size.value(), 1200u);
}

TEST(SteppedSizeTest, WhatIsFixedStays) {
  SteppedSize size({100, 100, 100});
  EXPECT_TRUE(size.is_fixed());
  Propose(&size, 1e9, 100);
  Propose(&size, 0, 100);
  EXPECT_EQ(size.value(), 100u);
}

}  // namespace
}  // namespace protocol
}  // namespace penstock
