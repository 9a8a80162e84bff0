#include "transport/progress/spinner.h"

#include <atomic>
#include <chrono>
#include <memory>

#include "gtest/gtest.h"
#include "transport/progress/poll_set.h"

namespace penstock {
namespace progress {
namespace {

class FakePollable : public Pollable {
 public:
  bool Poll() override { return input.exchange(always_has_input); }
  bool HasInput() const override { return input; }
  void SetArmed(bool value) override {
    armed = value;
    if (armed && comes_as_it_is_armed.exchange(false)) input = true;
  }

  std::atomic<bool> input{false};
  std::atomic<bool> armed{false};
  std::atomic<bool> comes_as_it_is_armed{false};
  std::atomic<bool> always_has_input{false};
};

class SpinnerTest : public testing::Test {
 protected:
  SpinnerTest() : pollable_(std::make_shared<FakePollable>()) {}

  void Add() { slot_ = set_.Add(pollable_); }
  void Wait(Spinner* spinner) {
    spinner->Wait(
        watches_,
        [this] {
          ++looks_;
          return looks_ == found_by_look_;
        },
        [this] {
          ++sleeps_;
          slept_armed_ = pollable_->armed;
          return true;
        });
  }

  PollSet set_{1};
  const std::shared_ptr<FakePollable> pollable_;
  PollSet::SlotId slot_ = 0;
  bool watches_ = true;
  int looks_ = 0;
  int found_by_look_ = 0;
  int sleeps_ = 0;
  bool slept_armed_ = false;
};

TEST_F(SpinnerTest, SleepsAtOnceWithNothingToPoll) {
  Spinner spinner(&set_, PollingMode::kBusy);
  watches_ = false;
  Wait(&spinner);
  EXPECT_EQ(looks_, 0);
  EXPECT_EQ(sleeps_, 1);
}

TEST_F(SpinnerTest, LooksAtDescriptorsBeforeItSleeps) {
  Spinner spinner(&set_, PollingMode::kAdaptive);
  Wait(&spinner);
  EXPECT_GT(looks_, 1);
  EXPECT_EQ(sleeps_, 1);
}

TEST_F(SpinnerTest, DoesNotSleepIfADescriptorHasInput) {
  Spinner spinner(&set_, PollingMode::kAdaptive);
  found_by_look_ = 2;
  Wait(&spinner);
  EXPECT_EQ(looks_, 2);
  EXPECT_EQ(sleeps_, 0);
}

TEST_F(SpinnerTest, DoesNotLookAtDescriptorsInEventMode) {
  Spinner spinner(&set_, PollingMode::kEvent);
  ASSERT_EQ(looks_, 0);
  Wait(&spinner);
  EXPECT_EQ(looks_, 0);
  EXPECT_EQ(sleeps_, 1);
}

TEST_F(SpinnerTest, DeliversInputWithoutSleeping) {
  Spinner spinner(&set_, PollingMode::kAdaptive);
  Add();
  pollable_->input = true;
  Wait(&spinner);
  EXPECT_FALSE(pollable_->input);
  EXPECT_EQ(sleeps_, 0);
}

TEST_F(SpinnerTest, LooksForOtherWorkWhileItPolls) {
  Spinner spinner(&set_, PollingMode::kAdaptive);
  Add();
  found_by_look_ = 1;
  Wait(&spinner);
  EXPECT_EQ(looks_, 1);
  EXPECT_EQ(sleeps_, 0);
}

TEST_F(SpinnerTest, SleepsArmedWhenNothingComes) {
  Spinner spinner(&set_, PollingMode::kAdaptive);
  Add();
  Wait(&spinner);
  EXPECT_GT(looks_, 0);
  EXPECT_EQ(sleeps_, 1);
  EXPECT_TRUE(slept_armed_);
}

TEST_F(SpinnerTest, SeesWhatCameAsItArmed) {
  Spinner spinner(&set_, PollingMode::kAdaptive);
  Add();
  pollable_->comes_as_it_is_armed = true;
  Wait(&spinner);
  EXPECT_FALSE(pollable_->input);
  EXPECT_EQ(sleeps_, 0);
}

// Tests a path whose peer writes again and again.
TEST_F(SpinnerTest, LooksForOtherWorkBesideABusyPath) {
  Spinner spinner(&set_, PollingMode::kAdaptive);
  Add();
  pollable_->input = pollable_->always_has_input = true;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (looks_ < 3 && std::chrono::steady_clock::now() < end) Wait(&spinner);
  EXPECT_EQ(looks_, 3);
  EXPECT_EQ(sleeps_, 0);
}

TEST_F(SpinnerTest, PollsABusyPathBesideOtherWork) {
  Spinner spinner(&set_, PollingMode::kAdaptive);
  Add();
  pollable_->input = true;
  found_by_look_ = 1;
  Wait(&spinner);
  EXPECT_TRUE(pollable_->input) << "the other work was due";
  Wait(&spinner);
  EXPECT_FALSE(pollable_->input);
}

TEST_F(SpinnerTest, SleepsAtOnceWhereOthersSpin) {
  Spinner spinner(&set_, PollingMode::kBusy);
  Add();
  ASSERT_TRUE(set_.BeginSpin());
  Wait(&spinner);
  EXPECT_EQ(sleeps_, 1);
  set_.EndSpin();
}

TEST_F(SpinnerTest, NeverSleepsInBusyMode) {
  Spinner spinner(&set_, PollingMode::kBusy);
  Add();
  Wait(&spinner);
  EXPECT_GT(looks_, 0);
  EXPECT_EQ(sleeps_, 0);
}

TEST_F(SpinnerTest, DoesNotPollInEventMode) {
  Spinner spinner(&set_, PollingMode::kEvent);
  Add();
  pollable_->input = true;
  Wait(&spinner);
  EXPECT_TRUE(pollable_->input);
  EXPECT_EQ(sleeps_, 1);
}

}  // namespace
}  // namespace progress
}  // namespace penstock
