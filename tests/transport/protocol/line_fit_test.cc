#include "transport/protocol/line_fit.h"

#include "gtest/gtest.h"

namespace penstock {
namespace protocol {
namespace {

// Adds `count` points of the line y = (1000 + 3 x) * factor, with x from 100 to
// 400.
void AddLine(LineFit* fit, int count, double factor = 1) {
  for (int i = 0; i < count; ++i) {
    const double x = 100 * (1 + i % 4);
    fit->Add(x, factor * (1000 + 3 * x));
  }
}

TEST(LineFitTest, TellsTheFixedPartFromTheSlope) {
  LineFit fit;
  AddLine(&fit, 12);
  ASSERT_TRUE(fit.has_line());
  EXPECT_NEAR(fit.fixed(), 1000, 1);
  EXPECT_NEAR(fit.slope(), 3, 0.01);
}

TEST(LineFitTest, FewPointsSayNothing) {
  LineFit fit;
  AddLine(&fit, 8);
  EXPECT_FALSE(fit.has_ratio());
  EXPECT_FALSE(fit.has_line());
}

TEST(LineFitTest, AFitBegunColdLeavesOutItsFirstPoint) {
  LineFit fit = LineFit::BegunCold();
  fit.Add(400, 1e9);
  AddLine(&fit, 12);
  ASSERT_TRUE(fit.has_line());
  EXPECT_NEAR(fit.fixed(), 1000, 1);
  EXPECT_NEAR(fit.slope(), 3, 0.01);
}

TEST(LineFitTest, PointsOfOneSizeHaveARatioAndNoLine) {
  LineFit fit;
  for (int i = 0; i < 100; ++i) fit.Add(1000 + i % 100, 4000);
  EXPECT_TRUE(fit.has_ratio());
  EXPECT_NEAR(fit.ratio(), 3.8, 0.2);
  EXPECT_FALSE(fit.has_line());
}

TEST(LineFitTest, NeitherPartIsNegative) {
  LineFit falling;
  LineFit steep;
  for (int i = 0; i < 40; ++i) {
    const double x = 100 * (1 + i % 4);
    falling.Add(x, 1000 - x);
    steep.Add(x, 3 * x - 200);
  }
  EXPECT_EQ(falling.slope(), 0);
  EXPECT_GT(falling.fixed(), 0);
  EXPECT_GE(steep.fixed(), 0);
}

TEST(LineFitTest, OddPointsAreLeftOut) {
  LineFit fit;
  AddLine(&fit, 40);
  for (int i = 0; i < 100; ++i) {
    for (int odd = 0; odd < 5; ++odd) fit.Add(100, 100000);
    AddLine(&fit, 4);
  }
  EXPECT_NEAR(fit.fixed(), 1000, 1);
  EXPECT_NEAR(fit.slope(), 3, 0.01);
}

TEST(LineFitTest, OddPointsOfTheOnlySizeAreLeftOut) {
  LineFit fit;
  for (int i = 0; i < 20; ++i) fit.Add(200, 1600);
  for (int i = 0; i < 100; ++i) {
    for (int odd = 0; odd < 5; ++odd) fit.Add(200, 100000);
    fit.Add(200, 1600);
  }
  EXPECT_NEAR(fit.ratio(), 8, 0.01);
}

TEST(LineFitTest, TheFirstPointsOfAnotherSizeAreNotOdd) {
  LineFit fit;
  for (int i = 0; i < 100; ++i) fit.Add(100000, 301000);
  for (int i = 0; i < 20; ++i) fit.Add(100, 1300);
  ASSERT_TRUE(fit.has_line());
  EXPECT_NEAR(fit.fixed(), 1000, 1);
}

TEST(LineFitTest, ManyOddPointsInARowAreTheTruth) {
  for (double factor : {100.0, 0.01}) {
    LineFit fit;
    AddLine(&fit, 400);
    AddLine(&fit, 31, factor);
    EXPECT_NEAR(fit.fixed(), 1000, 1);
    AddLine(&fit, 20, factor);
    ASSERT_TRUE(fit.has_line());
    EXPECT_NEAR(fit.fixed(), 1000 * factor, factor);
    EXPECT_NEAR(fit.slope(), 3 * factor, 0.01 * factor);
  }
}

TEST(LineFitTest, PointsOfTwoLinksAreNoLine) {
  LineFit fit;
  AddLine(&fit, 6, 100);
  for (int i = 0; i < 6; ++i) {
    AddLine(&fit, 4);
    EXPECT_FALSE(fit.has_line());
  }
  AddLine(&fit, 30);
  ASSERT_TRUE(fit.has_line());
  EXPECT_NEAR(fit.fixed(), 1000, 1);
}

TEST(LineFitTest, OldPointsAreForgotten) {
  LineFit fit;
  AddLine(&fit, 400);
  AddLine(&fit, 400, 1.5);
  EXPECT_NEAR(fit.fixed(), 1500, 20);
  EXPECT_NEAR(fit.slope(), 4.5, 0.05);
}

}  // namespace
}  // namespace protocol
}  // namespace penstock
