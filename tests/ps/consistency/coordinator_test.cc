#include "ps/consistency/coordinator.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace penstock::ps {
namespace {

using Verdict = Coordinator::Verdict;

constexpr int64_t kUnlimited = ConsistencyPolicy::kUnlimited;
constexpr WorkerId kFirst = {0, 1};
constexpr WorkerId kSecond = {1, 1};

// Two joined workers, and the policies that a test selects.
class CoordinatorTest : public testing::Test {
 protected:
  void Use(std::vector<ConsistencyPolicy::Options> policies) {
    Coordinator::Options options;
    options.membership.expected_workers = 2;
    options.policies = std::move(policies);
    options.max_wait = absl::Seconds(5);
    options.max_held_pulls = 2;
    core_.emplace(*Coordinator::Create(options));
    core_->Join(kFirst, now_);
    core_->Join(kSecond, now_);
  }
  Coordinator::Outcome Push(uint64_t ticket, WorkerId worker, uint64_t clock) {
    return core_->Push(ticket, worker, clock, now_);
  }
  // Returns the verdict on a push that is answered immediately.
  Verdict PushNow(WorkerId worker, uint64_t clock) {
    const auto outcome = Push(99, worker, clock);
    EXPECT_FALSE(outcome.answers.empty());
    return outcome.answers.at(0).verdict;
  }
  Coordinator::Outcome Pull(uint64_t ticket, WorkerId worker, uint64_t clock,
                            std::vector<size_t> policies = {}) {
    return core_->Pull(ticket, worker, clock, std::move(policies), now_);
  }

  absl::optional<Coordinator> core_;
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(CoordinatorTest, PushThatIsRepeatedCountsOnceInEachTable) {
  Use({{0}, {1}, {kUnlimited}});
  const auto first = Push(1, kFirst, 0);
  ASSERT_EQ(first.answers.size(), 1u);
  EXPECT_EQ(first.answers[0].verdict, Verdict::kAccepted);
  EXPECT_EQ(first.answers[0].counted, (std::vector<bool>{true, true, true}));
  EXPECT_EQ(first.applies.size(), 2u);  // the synchronous one gathers
  const auto again = Push(2, kFirst, 0);
  ASSERT_EQ(again.answers.size(), 1u);
  EXPECT_EQ(again.answers[0].verdict, Verdict::kDuplicate);
  EXPECT_TRUE(again.applies.empty());
  for (size_t at : {0, 1, 2}) {
    EXPECT_EQ(core_->policy(at).unapplied().size(), 1u);
  }
}

TEST_F(CoordinatorTest, PushIsOfAllTablesOrOfNone) {
  Use({{3}, {0}});
  // Expects a refusal: the first table would accept the push, but the second
  // table is still at version 0.
  EXPECT_EQ(PushNow(kFirst, 1), Verdict::kAhead);
  EXPECT_TRUE(core_->policy(0).unapplied().empty());
  EXPECT_EQ(PushNow(kFirst, 0), Verdict::kAccepted);
}

TEST_F(CoordinatorTest, LateForOneTableStillCountsInTheOther) {
  Use({{0, 1}, {3}});
  Push(1, kFirst, 0);
  core_->Applied(0, now_);
  const auto late = Push(2, kSecond, 0);
  ASSERT_EQ(late.answers.size(), 1u);
  EXPECT_EQ(late.answers[0].verdict, Verdict::kAccepted);
  EXPECT_EQ(late.answers[0].counted, (std::vector<bool>{false, true}));
}

TEST_F(CoordinatorTest, LateForAllTablesIsSaid) {
  Use({{0, 1}});
  Push(1, kFirst, 0);
  core_->Applied(0, now_);
  EXPECT_EQ(PushNow(kSecond, 0), Verdict::kLate);
  EXPECT_EQ(PushNow(kSecond, 0), Verdict::kDuplicate);
}

TEST_F(CoordinatorTest, StepsThatAreLeftOutNeverComeAfterwards) {
  Use({{4}});
  EXPECT_EQ(PushNow(kFirst, 3), Verdict::kAccepted);
  EXPECT_EQ(PushNow(kFirst, 2), Verdict::kDuplicate);
  EXPECT_EQ(core_->membership().ClockOf(0), 4u);
}

TEST_F(CoordinatorTest, PullIsAnsweredWhenTheLastTableIsReady) {
  Use({{0}, {1}});
  EXPECT_TRUE(Pull(1, kFirst, 1).answers.empty());
  EXPECT_EQ(core_->held_pulls(), 1u);
  Push(2, kFirst, 0);
  Push(3, kSecond, 0);
  core_->Applied(1, now_);
  core_->Applied(1, now_);
  const auto outcome = core_->Applied(0, now_);
  ASSERT_EQ(outcome.answers.size(), 1u);
  EXPECT_EQ(outcome.answers[0].ticket, 1u);
  EXPECT_EQ(outcome.answers[0].clock, 1u);
  EXPECT_EQ(core_->held_pulls(), 0u);
}

TEST_F(CoordinatorTest, PullOfOneTableDoesNotWaitForAnother) {
  Use({{0}, {1}});
  EXPECT_TRUE(Pull(1, kFirst, 1, {0}).answers.empty());
  EXPECT_EQ(Pull(2, kFirst, 1, {1}).answers.size(), 1u);
}

TEST_F(CoordinatorTest, PullSaysWhichStepItsValuesAreGoodFor) {
  Use({{0, 1}});
  for (uint64_t step : {0, 1, 2}) {
    PushNow(kFirst, step);
    core_->Applied(0, now_);
  }
  // Expects that the slow worker's push for step 0 is late. The same worker's
  // pull for step 1 returns the values of step 3.
  EXPECT_EQ(PushNow(kSecond, 0), Verdict::kLate);
  const auto outcome = Pull(1, kSecond, 1);
  ASSERT_EQ(outcome.answers.size(), 1u);
  EXPECT_EQ(outcome.answers[0].clock, 3u);
  EXPECT_EQ(PushNow(kSecond, 3), Verdict::kAccepted);
}

TEST_F(CoordinatorTest, JoinSaysWhereToBegin) {
  Use({{0}});
  for (uint64_t step : {0, 1}) {
    PushNow(kFirst, step);
    PushNow(kSecond, step);
    core_->Applied(0, now_);
  }
  const auto outcome = core_->Join({2, 1}, now_);
  EXPECT_EQ(outcome.verdict, Verdict::kAccepted);
  EXPECT_EQ(outcome.clock, 2u);
}

// Tests a join after a slow worker: at the slow worker's step, the pushes of a
// new worker would be late.
TEST_F(CoordinatorTest, JoinDoesNotBeginWhereStepsAreOver) {
  Use({{0, 1}});
  for (uint64_t step : {0, 1, 2}) {
    PushNow(kFirst, step);
    core_->Applied(0, now_);
  }
  EXPECT_EQ(core_->membership().floor(), 0u);
  EXPECT_EQ(core_->Join({2, 1}, now_).clock, 3u);
  EXPECT_EQ(core_->Join(kSecond, now_).clock, 3u);
  EXPECT_EQ(PushNow({2, 1}, 3), Verdict::kAccepted);
}

TEST_F(CoordinatorTest, SecondPushIsHeldUntilTheFirstIsApplied) {
  Use({{4}});
  PushNow(kFirst, 0);
  EXPECT_TRUE(Push(1, kFirst, 1).answers.empty());
  EXPECT_EQ(core_->held_pushes(), 1u);
  const auto outcome = core_->Applied(0, now_);
  ASSERT_EQ(outcome.answers.size(), 1u);
  EXPECT_EQ(outcome.answers[0].ticket, 1u);
  EXPECT_EQ(outcome.answers[0].verdict, Verdict::kAccepted);
  ASSERT_EQ(outcome.applies.size(), 1u);
  EXPECT_EQ(outcome.applies[0].pushes[0].clock, 1u);
}

TEST_F(CoordinatorTest, HeldPushIsReplacedByItsRepetition) {
  Use({{4}});
  PushNow(kFirst, 0);
  Push(1, kFirst, 1);
  const auto outcome = Push(2, kFirst, 1);
  ASSERT_EQ(outcome.answers.size(), 1u);
  EXPECT_EQ(outcome.answers[0].ticket, 1u);
  EXPECT_EQ(outcome.answers[0].verdict, Verdict::kReplaced);
  EXPECT_EQ(core_->Applied(0, now_).answers.at(0).ticket, 2u);
}

TEST_F(CoordinatorTest, NoCallIsHeldForLongerThanAgreed) {
  Use({{0}, {4}});
  PushNow(kFirst, 0);
  Push(1, kFirst, 0);
  Pull(2, kFirst, 1);
  now_ += absl::Seconds(5);
  EXPECT_LE(core_->NextDeadline(), now_);
  const auto outcome = core_->Tick(now_);
  ASSERT_EQ(outcome.answers.size(), 1u);
  EXPECT_EQ(outcome.answers[0].verdict, Verdict::kTimedOut);
  EXPECT_EQ(outcome.answers[0].reason, "waits for worker 1 (at step 0)");
}

TEST_F(CoordinatorTest, HeldPushTimesOutToo) {
  Use({{4}});
  PushNow(kFirst, 0);
  Push(1, kFirst, 1);
  now_ += absl::Seconds(5);
  const auto outcome = core_->Tick(now_);
  ASSERT_EQ(outcome.answers.size(), 1u);
  EXPECT_EQ(outcome.answers[0].verdict, Verdict::kTimedOut);
  EXPECT_EQ(core_->held_pushes(), 0u);
  // Ends the step in progress. The refused push has changed nothing, and may be
  // repeated.
  core_->Applied(0, now_);
  EXPECT_EQ(PushNow(kFirst, 1), Verdict::kAccepted);
}

TEST_F(CoordinatorTest, CancelledCallsGetNoAnswer) {
  Use({{1}});
  PushNow(kFirst, 0);
  Push(1, kFirst, 1);
  Pull(2, kFirst, 5);
  core_->Cancel(1);
  core_->Cancel(2);
  core_->Cancel(3);
  EXPECT_EQ(core_->held_pushes() + core_->held_pulls(), 0u);
  EXPECT_TRUE(core_->Applied(0, now_).answers.empty());
}

TEST_F(CoordinatorTest, ACallThatWasAnsweredCannotBeCancelled) {
  Use({{4}});
  PushNow(kFirst, 0);
  Push(1, kFirst, 1);
  core_->Applied(0, now_);  // answers ticket 1
  EXPECT_TRUE(Push(2, kFirst, 2).answers.empty());
  core_->Cancel(1);
  EXPECT_EQ(core_->held_pushes(), 1u);
}

TEST_F(CoordinatorTest, TwoPullsWithOneTicketAreNotBothHeld) {
  Use({{0}});
  EXPECT_TRUE(Pull(1, kFirst, 1).answers.empty());
  EXPECT_EQ(Pull(1, kFirst, 1).answers.at(0).verdict, Verdict::kTooMany);
  EXPECT_EQ(core_->held_pulls(), 1u);
}

TEST_F(CoordinatorTest, CallsOfWhoIsGoneAreAnsweredAtOnce) {
  Use({{4}});
  for (const bool is_started_anew : {false, true}) {
    const uint64_t clock = core_->membership().ClockOf(0);
    PushNow(kFirst, clock);
    Push(1, kFirst, clock + 1);
    Pull(2, kFirst, clock + 9);
    const auto outcome =
        is_started_anew ? core_->Join({0, 2}, now_) : core_->Lost(kFirst);
    ASSERT_EQ(outcome.answers.size(), 2u);
    for (const Coordinator::Answer& answer : outcome.answers) {
      EXPECT_EQ(answer.verdict,
                is_started_anew ? Verdict::kSuperseded : Verdict::kNotMember);
    }
    core_->Applied(0, now_);
    if (!is_started_anew) core_->Join(kFirst, now_);
  }
}

TEST_F(CoordinatorTest, ReadersWaitLikeWorkersAndAreNoMembers) {
  Use({{0}});
  EXPECT_EQ(core_->Pull(1, absl::nullopt, 0, {}, now_).answers.size(), 1u);
  EXPECT_TRUE(core_->Pull(2, absl::nullopt, 1, {}, now_).answers.empty());
  EXPECT_EQ(core_->membership().size(), 2u);
}

TEST_F(CoordinatorTest, PullsOfOneDoNotCrowdOutAnothers) {
  Use({{0}});
  for (uint64_t ticket : {1, 2}) {
    EXPECT_TRUE(Pull(ticket, kFirst, 1).answers.empty());
  }
  EXPECT_EQ(Pull(3, kFirst, 1).answers.at(0).verdict, Verdict::kTooMany);
  EXPECT_TRUE(Pull(4, kSecond, 1).answers.empty());
  EXPECT_TRUE(core_->Pull(5, absl::nullopt, 1, {}, now_).answers.empty());
  EXPECT_EQ(core_->held_pulls(), 4u);
}

TEST_F(CoordinatorTest, StrangersAndTheSupersededAreRefused) {
  Use({{0}});
  EXPECT_EQ(PushNow({7, 1}, 0), Verdict::kNotMember);
  EXPECT_EQ(PushNow({0, 9}, 0), Verdict::kSuperseded);
  EXPECT_EQ(Pull(1, {7, 1}, 0).answers.at(0).verdict, Verdict::kNotMember);
  EXPECT_EQ(Pull(1, {0, 9}, 0).answers.at(0).verdict, Verdict::kSuperseded);
}

TEST_F(CoordinatorTest, WhatIsOutOfBoundsIsRefused) {
  Use({{kUnlimited}});
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
  for (uint64_t clock : {kMaxClock, kHuge}) {
    EXPECT_EQ(PushNow(kFirst, clock), Verdict::kInvalid);
    EXPECT_EQ(Pull(1, kFirst, clock).answers.at(0).verdict, Verdict::kInvalid);
  }
  EXPECT_EQ(PushNow({kMaxRanks, 1}, 0), Verdict::kInvalid);
  EXPECT_EQ(Pull(1, kFirst, 0, {1}).answers.at(0).verdict, Verdict::kInvalid);
  EXPECT_EQ(PushNow(kFirst, kMaxClock - 1), Verdict::kAhead);
  EXPECT_EQ(core_->Join({5, 1}, now_).verdict, Verdict::kAccepted);
}

TEST_F(CoordinatorTest, EveryCallIsASignOfLife) {
  Use({{0}});
  for (int i = 0; i < 5; ++i) {
    now_ += absl::Seconds(6);
    PushNow(kFirst, 0);
    Pull(1, kSecond, 0);
    core_->Tick(now_);
    EXPECT_EQ(core_->membership().size(), 2u);
  }
}

TEST_F(CoordinatorTest, DrainAnswersAllAndRefusesTheRest) {
  Use({{4}});
  PushNow(kFirst, 0);
  Push(1, kFirst, 1);
  Pull(2, kSecond, 9);
  const auto outcome = core_->Drain();
  ASSERT_EQ(outcome.answers.size(), 2u);
  EXPECT_EQ(outcome.answers[0].verdict, Verdict::kDraining);
  EXPECT_EQ(outcome.answers[1].verdict, Verdict::kDraining);
  EXPECT_EQ(PushNow(kFirst, 1), Verdict::kDraining);
  EXPECT_EQ(Pull(3, kFirst, 0).answers.at(0).verdict, Verdict::kDraining);
  EXPECT_EQ(core_->Pull(4, absl::nullopt, 0, {}, now_).answers.at(0).verdict,
            Verdict::kDraining);
  EXPECT_EQ(core_->Join({2, 1}, now_).verdict, Verdict::kDraining);
  core_->Applied(0, now_);
  EXPECT_EQ(core_->policy(0).version(), 1u);
  EXPECT_EQ(core_->NextDeadline(), absl::InfiniteFuture());
}

TEST_F(CoordinatorTest, ExplainsWhomAPullWaitsFor) {
  Use({{0}, {2}});
  EXPECT_EQ(core_->Explain(0, {0, 1}), "waits for nothing");
  EXPECT_EQ(core_->Explain(1, {0, 1}),
            "waits for worker 0 (at step 0), worker 1 (at step 0)");
  PushNow(kFirst, 0);
  EXPECT_EQ(core_->Explain(1, {0, 1}), "waits for worker 1 (at step 0)");
  PushNow(kSecond, 0);
  EXPECT_EQ(core_->Explain(1, {0, 1}),
            "waits for a step that is being applied");
  core_->Applied(0, now_);
  core_->Lost(kFirst);
  core_->Lost(kSecond);
  EXPECT_EQ(core_->Explain(5, {0}), "waits for workers: none has joined");
  core_.emplace(*Coordinator::Create({{}, {{0}}}));
  EXPECT_EQ(core_->Explain(1, {0}),
            "waits for the run to assemble: 0 of 1 workers have joined");
}

TEST_F(CoordinatorTest, LongListOfWorkersIsCutShort) {
  Use({{0}});
  for (uint32_t rank = 2; rank < 20; ++rank) core_->Join({rank, 1}, now_);
  for (WorkerId worker : {kFirst, kSecond}) PushNow(worker, 0);
  core_->Applied(0, now_);
  const std::string reason = core_->Explain(2, {0});
  EXPECT_NE(reason.find("worker 7 (at step 0), 12 more"), std::string::npos)
      << reason;
}

TEST_F(CoordinatorTest, ClocksForACheckpointLeaveOutWhatIsNotApplied) {
  Use({{4}});
  PushNow(kFirst, 0);
  core_->Applied(0, now_);
  PushNow(kFirst, 1);
  const std::vector<RankClock> clocks = core_->AppliedClocks();
  ASSERT_EQ(clocks.size(), 2u);
  EXPECT_EQ(clocks[0].clock, 1u);
  EXPECT_EQ(clocks[1].clock, 0u);
}

TEST_F(CoordinatorTest, RestoredClocksAreNotAheadOfTheVersion) {
  Coordinator::Options options;
  options.policies = {{0, 0, 7}};
  options.membership.floor = 8;
  options.membership.clocks = {{kFirst, 8}};
  core_.emplace(*Coordinator::Create(options));
  EXPECT_EQ(core_->membership().floor(), 7u);
  EXPECT_EQ(core_->Join(kFirst, now_).clock, 7u);
  EXPECT_EQ(PushNow(kFirst, 7), Verdict::kAccepted);
}

}  // namespace
}  // namespace penstock::ps
