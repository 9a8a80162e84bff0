#include "ps/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace penstock::ps::optim {
namespace {

TEST(ScheduleTest, AConstantRateIsThatOfEveryStep) {
  Schedule schedule;
  schedule.learning_rate = 0.25;
  for (uint64_t step : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 60}) {
    EXPECT_EQ(schedule.RateOf(step), 0.25);
  }
}

TEST(ScheduleTest, StepsMultiplyTheRateEverySoOften) {
  Schedule schedule;
  schedule.kind = Schedule::Kind::kStep;
  schedule.learning_rate = 1;
  schedule.every = 3;
  schedule.factor = 0.5;
  const double expected[] = {1, 1, 1, 0.5, 0.5, 0.5, 0.25};
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(schedule.RateOf(i + 1), expected[i]);
  EXPECT_EQ(schedule.RateOf(std::numeric_limits<uint64_t>::max()), 0);
}

TEST(ScheduleTest, TheCosineFallsFromOneRateToTheOther) {
  Schedule schedule;
  schedule.kind = Schedule::Kind::kCosine;
  schedule.learning_rate = 3;
  schedule.final_rate = 1;
  schedule.every = 4;
  EXPECT_EQ(schedule.RateOf(1), 3);
  EXPECT_NEAR(schedule.RateOf(2), 2 + std::sqrt(0.5), 1e-15);
  EXPECT_NEAR(schedule.RateOf(3), 2, 1e-15);
  EXPECT_EQ(schedule.RateOf(5), 1);
  EXPECT_EQ(schedule.RateOf(1'000'000), 1);
}

TEST(ScheduleTest, AWarmUpRisesAndThenTheKindBegins) {
  Schedule schedule;
  schedule.kind = Schedule::Kind::kStep;
  schedule.learning_rate = 1;
  schedule.every = 2;
  schedule.factor = 0.5;
  schedule.warm_up_steps = 4;
  const double expected[] = {0.25, 0.5, 0.75, 1, 1, 1, 0.5, 0.5, 0.25};
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(schedule.RateOf(i + 1), expected[i]);
}

TEST(ScheduleTest, WhatIsWrongIsNamed) {
  const auto message = [](auto change) {
    Schedule schedule;
    schedule.kind = Schedule::Kind::kStep;
    schedule.every = 1;
    change(&schedule);
    return std::string(schedule.Check().message());
  };
  const double nan = std::nan("");
  EXPECT_EQ(message([](Schedule*) {}), "");
  for (double rate : {0.0, -1.0, nan, HUGE_VAL, 1e-300, 1e31}) {
    EXPECT_EQ(message([&](Schedule* s) {
                s->learning_rate = rate;
              }).rfind("learning_rate is ", 0),
              0U)
        << rate;
  }
  EXPECT_EQ(message([](Schedule* s) { s->every = 0; }),
            "every is 0: a step schedule needs a number of steps");
  for (double factor : {-0.1, 1.1, nan}) {
    EXPECT_EQ(message([&](Schedule* s) {
                s->factor = factor;
              }).rfind("factor is ", 0),
              0U);
  }
  for (double rate : {-0.1, HUGE_VAL, nan}) {
    EXPECT_EQ(message([&](Schedule* s) {
                s->kind = Schedule::Kind::kCosine;
                s->final_rate = rate;
              }).rfind("final_rate is ", 0),
              0U);
  }
  EXPECT_EQ(
      message([](Schedule* s) { s->kind = static_cast<Schedule::Kind>(7); }),
      "kind is none of the known schedules");
}

TEST(ScheduleTest, WhatTheKindDoesNotUseIsNotLookedAt) {
  Schedule schedule;
  schedule.factor = schedule.final_rate = std::nan("");
  EXPECT_TRUE(schedule.Check().ok());
}

}  // namespace
}  // namespace penstock::ps::optim
