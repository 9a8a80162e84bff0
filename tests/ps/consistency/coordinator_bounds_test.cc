// Tests invalid options, and more ranks and calls than a training has.

#include <cstdint>
#include <ctime>
#include <string>

#include "gtest/gtest.h"
#include "ps/consistency/coordinator.h"

namespace penstock::ps {
namespace {

constexpr int64_t kUnlimited = ConsistencyPolicy::kUnlimited;

// Limits the processor time of a test. Logarithmic operations need far less
// time, even with a sanitizer. Quadratic operations need more.
constexpr double kSeconds = 5;

double SecondsOfProcessor() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

TEST(CoordinatorOptionsTest, BadOptionsAreNamed) {
  auto error = [](auto change) {
    Coordinator::Options options;
    change(&options);
    return std::string(Coordinator::Create(options).status().message());
  };
  using Options = Coordinator::Options;
  EXPECT_EQ(error([](Options*) {}), "");
  EXPECT_NE(error([](Options* o) {
              o->max_wait = absl::ZeroDuration();
            }).find("max_wait"),
            std::string::npos);
  EXPECT_NE(
      error([](Options* o) { o->max_held_pulls = 0; }).find("max_held_pulls"),
      std::string::npos);
  EXPECT_NE(error([](Options* o) { o->policies = {{-3}}; }).find("staleness"),
            std::string::npos);
  EXPECT_NE(error([](Options* o) {
              o->membership.expected_workers = 0;
            }).find("expected_workers"),
            std::string::npos);
  // Expects that options which no server's checkpoint can have are refused.
  EXPECT_NE(error([](Options* o) {
              o->policies = {{kUnlimited}};
              o->membership.clocks = {{{3, 1}, kMaxClock + 1}};
            }).find("rank 3"),
            std::string::npos);
  EXPECT_NE(error([](Options* o) {
              o->policies = {{kUnlimited}};
              o->membership.floor = kMaxClock + 1;
            }).find("floor"),
            std::string::npos);
}

TEST(CoordinatorBoundsTest, HostileRanksAreRememberedOnlyOnce) {
  Coordinator::Options options;
  options.policies = {{kUnlimited}};
  Coordinator core = *Coordinator::Create(options);
  absl::Time now = absl::UnixEpoch();
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint32_t rank = 0; rank < 2 * kMaxRanks; ++rank) {
      const WorkerId worker{rank, round};
      core.Join(worker, now);
      core.Push(1, worker, round, now);
      core.Lost(worker);
    }
  }
  EXPECT_EQ(core.membership().Clocks().size(), size_t{kMaxRanks});
  EXPECT_LE(core.policy(0).unapplied().size(), size_t{kMaxRanks});
  EXPECT_EQ(core.held_pushes(), 0u);
}

// Tests that a push with the highest clock is refused. Afterwards the rank
// could not train any more.
TEST(CoordinatorBoundsTest, NoPushUsesUpTheClocksOfItsRank) {
  for (const int64_t staleness : {kUnlimited, int64_t{1} << 40}) {
    Coordinator::Options options;
    options.policies = {{staleness}};
    Coordinator core = *Coordinator::Create(options);
    const absl::Time now = absl::UnixEpoch();
    const WorkerId worker{0, 1};
    core.Join(worker, now);
    const auto push = [&](uint64_t clock) {
      const auto verdict = core.Push(1, worker, clock, now).answers[0].verdict;
      core.Applied(0, now);
      return verdict;
    };
    using Verdict = Coordinator::Verdict;
    for (uint64_t clock = kMaxClock - 1; clock > 100000; clock /= 2) {
      EXPECT_EQ(push(clock), Verdict::kAhead) << clock;
      EXPECT_EQ(core.Pull(2, worker, clock, {}, now).answers[0].verdict,
                Verdict::kAhead);
    }
    EXPECT_EQ(push(0), Verdict::kAccepted);
    // Skips some steps, as a worker may.
    EXPECT_EQ(push(1 + Coordinator::kMaxLead), Verdict::kAccepted);
    EXPECT_EQ(push(2 + 2 * Coordinator::kMaxLead), Verdict::kAccepted);
    EXPECT_EQ(core.membership().ClockOf(0), 3 + 2 * Coordinator::kMaxLead);
  }
}

// Tests many ranks, each with an unapplied push and a held push.
TEST(CoordinatorBoundsTest, GivingUpHeldPushesTakesNoLongerTheMoreThereAre) {
  Coordinator::Options options;
  options.policies = {{kUnlimited}};
  Coordinator core = *Coordinator::Create(options);
  const absl::Time now = absl::UnixEpoch();
  for (uint32_t rank = 0; rank < kMaxRanks; ++rank) {
    core.Join({rank, 1}, now);
    const uint64_t clock = core.membership().ClockOf(rank);
    core.Push(rank, {rank, 1}, clock, now);
    core.Push(rank, {rank, 1}, clock + 1, now);
  }
  EXPECT_EQ(core.held_pushes(), size_t{kMaxRanks});
  const double before = SecondsOfProcessor();
  for (uint32_t rank = kMaxRanks; rank > 0; --rank) core.Cancel(rank - 1);
  EXPECT_LT(SecondsOfProcessor() - before, kSeconds);
  EXPECT_EQ(core.held_pushes(), 0u);
}

TEST(CoordinatorBoundsTest, ReasonsTakeNoLongerTheMoreWorkersThereAre) {
  Coordinator::Options options;
  options.policies = {{0}, {3}};
  Coordinator core = *Coordinator::Create(options);
  absl::Time now = absl::UnixEpoch();
  for (uint32_t rank = 0; rank < kMaxRanks; ++rank) core.Join({rank, 1}, now);
  for (uint64_t ticket = 0; ticket < 1024; ++ticket) {
    core.Pull(ticket, absl::nullopt, 9, {}, now);
  }
  now += options.max_wait;
  for (uint32_t rank = 0; rank < kMaxRanks; ++rank) {
    core.Heartbeat({rank, 1}, now);
  }
  const double before = SecondsOfProcessor();
  const Coordinator::Outcome outcome = core.Tick(now);
  EXPECT_LT(SecondsOfProcessor() - before, kSeconds);
  ASSERT_EQ(outcome.answers.size(), 1024u);
  EXPECT_NE(outcome.answers[0].reason.find("at least 992 more"),
            std::string::npos)
      << outcome.answers[0].reason;
}

}  // namespace
}  // namespace penstock::ps
