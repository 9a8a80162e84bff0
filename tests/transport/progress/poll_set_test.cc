#include "transport/progress/poll_set.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace penstock {
namespace progress {
namespace {

class FakePollable : public Pollable {
 public:
  bool Poll() override {
    ++polls;
    const bool found = input.exchange(false);
    if (on_poll) on_poll();
    return found && !finds_nothing;
  }
  bool HasInput() const override { return input; }
  void SetArmed(bool value) override { armed = value; }
  bool IsReported() const override { return is_reported; }

  std::atomic<bool> input{false};
  std::atomic<bool> armed{false};
  std::atomic<int> polls{0};
  bool is_reported = false;
  bool finds_nothing = false;  // HasInput() was true, but Poll() finds no input
  std::function<void()> on_poll;
};

TEST(PollSet, PollsOnlyWhatHasInput) {
  PollSet set(1);
  auto one = std::make_shared<FakePollable>();
  auto other = std::make_shared<FakePollable>();
  set.Add(one);
  set.Add(other);
  EXPECT_FALSE(set.PollAll());
  other->input = true;
  EXPECT_TRUE(set.PollAll());
  EXPECT_FALSE(set.PollAll());
  EXPECT_EQ(one->polls, 0);
  EXPECT_EQ(other->polls, 1);
}

TEST(PollSet, PollsEachThatIsHot) {
  PollSet set(1);
  std::vector<std::shared_ptr<FakePollable>> pollables;
  for (int i = 0; i < 40; ++i) {  // more than one block
    pollables.push_back(std::make_shared<FakePollable>());
    set.Add(pollables.back());
    pollables.back()->input = true;
  }
  EXPECT_TRUE(set.PollHot());
  for (const auto& pollable : pollables) EXPECT_EQ(pollable->polls, 1);
  EXPECT_FALSE(set.PollHot());
}

absl::Time g_now = absl::FromUnixSeconds(1000);

// Adds as many clients as possible. A round over all of them takes too long.
TEST(PollSet, ARoundEndsInTimeAndTheNextOneGoesOn) {
  constexpr int kCount = 40;  // more than one block
  PollSet set(1, [] { return g_now; });
  std::vector<std::shared_ptr<FakePollable>> pollables;
  for (int i = 0; i < kCount; ++i) {
    auto pollable = std::make_shared<FakePollable>();
    FakePollable* self = pollable.get();
    // Keeps giving the pollable input.
    self->on_poll = [self] {
      g_now += absl::Nanoseconds(PollSet::kRoundNanos / 5);
      self->input = true;
    };
    self->input = true;
    set.Add(pollable);
    pollables.push_back(std::move(pollable));
  }
  for (int round = 1; round <= 40; ++round) {
    const absl::Time begin = g_now;
    EXPECT_TRUE(round % 2 == 0 ? set.PollAll() : set.PollHot());
    EXPECT_LE(g_now - begin, absl::Nanoseconds(PollSet::kRoundNanos * 6 / 5));
    int least = pollables[0]->polls, most = least;
    for (const auto& pollable : pollables) {
      least = std::min(least, pollable->polls.load());
      most = std::max(most, pollable->polls.load());
    }
    EXPECT_LE(most - least, 1) << "each has its turn in round " << round;
  }
  EXPECT_GE(pollables.back()->polls, 6);
}

TEST(PollSet, ArmedExactlyWhileNobodySpins) {
  PollSet set(2);
  auto early = std::make_shared<FakePollable>();
  set.Add(early);
  EXPECT_TRUE(early->armed);
  ASSERT_TRUE(set.BeginSpin());
  EXPECT_FALSE(early->armed);
  auto late = std::make_shared<FakePollable>();
  late->armed = true;
  set.Add(late);
  EXPECT_FALSE(late->armed);
  ASSERT_TRUE(set.BeginSpin());
  EXPECT_FALSE(set.EndSpin());
  EXPECT_FALSE(early->armed);
  EXPECT_FALSE(set.EndSpin());
  EXPECT_TRUE(early->armed);
  EXPECT_TRUE(late->armed);
}

TEST(PollSet, EachHotPollableIsDisarmedWhileAThreadSpins) {
  PollSet set(1);
  std::vector<std::shared_ptr<FakePollable>> pollables;
  for (int i = 0; i < 3; ++i) {
    pollables.push_back(std::make_shared<FakePollable>());
    set.Add(pollables.back());
  }
  ASSERT_TRUE(set.BeginSpin());
  for (const auto& pollable : pollables) EXPECT_FALSE(pollable->armed);
  EXPECT_FALSE(set.EndSpin());
  for (const auto& pollable : pollables) EXPECT_TRUE(pollable->armed);
}

TEST(PollSet, SpinnersAreBounded) {
  PollSet set(2);
  EXPECT_TRUE(set.BeginSpin());
  EXPECT_TRUE(set.BeginSpin());
  EXPECT_FALSE(set.BeginSpin());
  set.EndSpin();
  EXPECT_TRUE(set.BeginSpin());
}

TEST(PollSet, LastSpinnerIsToldOfInput) {
  PollSet set(2);
  auto pollable = std::make_shared<FakePollable>();
  set.Add(pollable);
  set.BeginSpin();
  set.BeginSpin();
  pollable->input = true;
  EXPECT_FALSE(set.EndSpin());  // the other thread sees the input
  EXPECT_TRUE(set.EndSpin());
}

TEST(PollSet, RemovedIsReleasedAtOnceAndItsSlotUsedAgain) {
  PollSet set(1);
  for (int round = 0; round < 3; ++round) {
    std::vector<PollSet::SlotId> ids;
    std::vector<std::weak_ptr<FakePollable>> weak;
    for (int i = 0; i < 100; ++i) {  // several blocks
      auto pollable = std::make_shared<FakePollable>();
      pollable->input = true;
      weak.push_back(pollable);
      ids.push_back(set.Add(pollable));
      EXPECT_LT(ids.back(), 100u);
    }
    EXPECT_TRUE(set.PollAll());
    for (const auto& pollable : weak) EXPECT_EQ(pollable.lock()->polls, 1);
    for (PollSet::SlotId id : ids) set.Remove(id);
    for (const auto& pollable : weak) EXPECT_TRUE(pollable.expired());
    EXPECT_FALSE(set.PollAll());
  }
}

TEST(PollSet, PollableMayRemoveItself) {
  PollSet set(1);
  auto pollable = std::make_shared<FakePollable>();
  std::weak_ptr<FakePollable> weak = pollable;
  const PollSet::SlotId id = set.Add(pollable);
  pollable->input = true;
  pollable->on_poll = [&set, &weak, id] {
    set.Remove(id);
    EXPECT_FALSE(weak.expired());
  };
  pollable.reset();
  EXPECT_TRUE(set.PollAll());
  EXPECT_TRUE(weak.expired());
  EXPECT_FALSE(set.PollAll());
}

TEST(PollSet, WhoMissesABusySlotHasItLookedAtAgain) {
  PollSet set(1);
  auto pollable = std::make_shared<FakePollable>();
  set.Add(pollable);
  pollable->input = true;
  pollable->finds_nothing = true;
  pollable->on_poll = [&set, &pollable] {
    if (pollable->polls > 1) return;
    // Sets more input now. This thread has found nothing and will sleep. The
    // thread that the input wakes finds the slot occupied.
    std::thread([&set, &pollable] {
      pollable->input = true;
      EXPECT_FALSE(set.PollAll());
    }).join();
  };
  EXPECT_FALSE(set.PollAll());
  EXPECT_EQ(pollable->polls, 2);
}

// Other threads must not make a thread count input that does not exist.
TEST(PollSet, WhatTheKernelReportsIsNotLookedAtAgain) {
  PollSet set(2);
  auto pollable = std::make_shared<FakePollable>();
  pollable->is_reported = true;
  pollable->finds_nothing = true;
  set.Add(pollable);
  pollable->input = true;
  pollable->on_poll = [&set] {
    std::thread([&set] { EXPECT_FALSE(set.PollAll()); }).join();
  };
  EXPECT_FALSE(set.PollAll());
  EXPECT_EQ(pollable->polls, 1);
  ASSERT_TRUE(set.BeginSpin());
  pollable->input = true;
  EXPECT_FALSE(set.EndSpin());
}

// Spins so often that a pollable without input becomes cold, and is then polled
// rarely.
void SpinLong(PollSet* set) {
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(set->BeginSpin());
    set->PollAll();
    set->EndSpin();
  }
}

TEST(PollSet, WhatHadNoInputForLongStaysArmedAndIsPolledSeldom) {
  PollSet set(2);
  auto pollable = std::make_shared<FakePollable>();
  set.Add(pollable);
  SpinLong(&set);
  EXPECT_TRUE(pollable->armed);
  ASSERT_TRUE(set.BeginSpin());
  EXPECT_TRUE(pollable->armed);
  pollable->input = true;
  EXPECT_FALSE(set.PollHot());
  EXPECT_TRUE(set.PollAll());
  // Expects that the pollable is not armed: it is hot again, and a thread
  // spins.
  EXPECT_FALSE(pollable->armed);
  pollable->input = true;
  EXPECT_TRUE(set.PollHot());
  set.EndSpin();
  EXPECT_TRUE(pollable->armed);
}

TEST(PollSet, WhatHasInputNowAndThenStaysHot) {
  PollSet set(1);
  auto pollable = std::make_shared<FakePollable>();
  set.Add(pollable);
  for (int i = 0; i < 20; ++i) {
    pollable->input = true;
    for (int k = 0; k < 100; ++k) {
      ASSERT_TRUE(set.BeginSpin());
      EXPECT_FALSE(pollable->armed);
      set.PollHot();
      set.EndSpin();
    }
    EXPECT_FALSE(pollable->input);
  }
}

TEST(PollSet, WhoTakesItForColdWhileOthersSpinIsToldOfInput) {
  PollSet set(2);
  auto pollable = std::make_shared<FakePollable>();
  set.Add(pollable);
  ASSERT_TRUE(set.BeginSpin());
  // Sets input that nobody polls, as if it came between the poll and the
  // arming.
  pollable->input = true;
  bool told = false;
  for (int i = 0; i < 2000 && !told; ++i) {
    ASSERT_TRUE(set.BeginSpin());
    told = set.EndSpin();
  }
  EXPECT_TRUE(told);
  EXPECT_TRUE(pollable->armed);
}

// Tests a fork during a spin, with a pollable in the set. The child has neither
// the spinners nor the pollables of its parent.
TEST(PollSet, ForkedChildHasASetOfItsOwn) {
  const auto parents = std::make_shared<FakePollable>();
  PollSet* const set = PollSet::Get();
  const PollSet::SlotId parents_id = set->Add(parents);
  while (set->BeginSpin()) {
  }
  const pid_t child = fork();
  if (child == 0) {
    PollSet* const own = PollSet::Get();
    if (!own->empty() || !own->BeginSpin()) _exit(1);
    const auto pollable = std::make_shared<FakePollable>();
    pollable->input = true;
    const PollSet::SlotId id = own->Add(pollable);
    own->Remove(parents_id);
    if (own->empty() || !own->PollAll()) _exit(2);
    own->Remove(id);
    _exit(own->empty() && pollable.use_count() == 1 ? 0 : 3);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  set->Remove(parents_id);
  EXPECT_TRUE(set->empty());
  EXPECT_EQ(parents.use_count(), 1);
}

}  // namespace
}  // namespace progress
}  // namespace penstock
