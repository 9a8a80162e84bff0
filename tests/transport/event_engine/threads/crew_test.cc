#include "transport/event_engine/threads/crew.h"

#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "transport/progress/poll_set.h"

namespace penstock {
namespace event_engine {
namespace {

using progress::PollingMode;

// Returns a crew, which is never destroyed. Has two spinners by default,
// however many cores this machine has.
Crew* NewCrew(PollingMode mode, progress::PollSet** set = nullptr,
              int spinners = 2) {
  auto* const own = new progress::PollSet(spinners);
  if (set != nullptr) *set = own;
  return *Crew::Create(own, mode);
}

class CrewTest : public testing::TestWithParam<PollingMode> {};

INSTANTIATE_TEST_SUITE_P(All, CrewTest,
                         testing::Values(PollingMode::kEvent,
                                         PollingMode::kAdaptive));

TEST_P(CrewTest, EveryTaskRunsOnce) {
  Crew* const crew = NewCrew(GetParam());
  constexpr int kTasks = 2000;
  std::vector<std::atomic<int>> runs(kTasks);
  absl::BlockingCounter left(kTasks);
  for (int i = 0; i < kTasks; ++i) {
    crew->Run([&, i] {
      ++runs[i];
      left.DecrementCount();
    });
  }
  left.Wait();
  for (auto& run : runs) ASSERT_EQ(run, 1);
}

TEST_P(CrewTest, TaskOfATaskRunsOnTheCrew) {
  Crew* const crew = NewCrew(GetParam());
  absl::Notification done;
  crew->Run([&] {
    crew->Run([&] {
      EXPECT_TRUE(crew->IsCurrent());
      done.Notify();
    });
  });
  done.WaitForNotification();
  EXPECT_FALSE(crew->IsCurrent());
}

// Tests tasks that block until the last one runs.
TEST_P(CrewTest, TasksThatBlockStopNobody) {
  Crew* const crew = NewCrew(GetParam());
  constexpr int kTasks = 10;
  absl::Notification last;
  absl::BlockingCounter left(kTasks);
  for (int i = 0; i < kTasks; ++i) {
    crew->Run([&] {
      last.WaitForNotification();
      left.DecrementCount();
    });
  }
  crew->Run([&] { last.Notify(); });
  left.Wait();
}

TEST_P(CrewTest, DoorbellWakesTheSleeper) {
  Crew* const crew = NewCrew(GetParam());
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  absl::Notification rang;
  const auto id = crew->watches()->Add(fd, [&] { rang.Notify(); });
  ASSERT_TRUE(id.ok());
  ASSERT_EQ(eventfd_write(fd, 1), 0);
  rang.WaitForNotification();
  crew->watches()->Remove(*id);
  close(fd);
}

// A pollable whose input is gone after the first poll.
class Source : public progress::Pollable {
 public:
  bool Poll() override { return has_input_.exchange(false); }
  bool HasInput() const override { return has_input_; }
  void SetArmed(bool) override {}
  void Put() { has_input_ = true; }

 private:
  std::atomic<bool> has_input_{false};
};

// Tests that another thread polls the paths while a task blocks. Only one
// spinner is allowed, so the blocked thread must no longer count as one.
TEST(CrewPollTest, PathsArePolledWhileATaskBlocks) {
  progress::PollSet* set = nullptr;
  Crew* const crew = NewCrew(PollingMode::kBusy, &set, /*spinners=*/1);
  auto source = std::make_shared<Source>();
  const auto slot = set->Add(source);
  absl::Notification blocked, release, ended;
  crew->Run([&] {
    blocked.Notify();
    release.WaitForNotification();
    ended.Notify();
  });
  blocked.WaitForNotification();
  source->Put();
  while (source->HasInput()) std::this_thread::yield();
  release.Notify();
  ended.WaitForNotification();
  set->Remove(slot);
}

// A pollable that always has input, and rings no doorbell.
class Flood : public progress::Pollable {
 public:
  bool Poll() override { return ++polls_ > 0; }
  bool HasInput() const override { return is_on_; }
  void SetArmed(bool) override {}
  void Set(bool on) { is_on_ = on; }
  bool IsPolledSoon() const {
    const int64_t goal = polls_ + 10;
    for (int i = 0; i < 10000 && polls_ < goal; ++i) Pause();
    return polls_ >= goal;
  }
  static void Pause() {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  std::atomic<bool> is_on_{false};
  std::atomic<int64_t> polls_{0};
};

// A task that blocks until this object is told to release it.
class Block {
 public:
  explicit Block(Crew* crew) {
    crew->Run([this] {
      begun_.Notify();
      release_.WaitForNotification();
      ended_.Notify();
    });
    begun_.WaitForNotification();
  }
  void Release() {
    release_.Notify();
    ended_.WaitForNotification();
  }

 private:
  absl::Notification begun_, release_, ended_;
};

// Tests input that a leader has not polled before its task blocks. The next
// leader must poll the input. This leader has learnt to sleep immediately, and
// no doorbell rings.
TEST(CrewPollTest, LeftInputIsPolledWhileATaskBlocks) {
  progress::PollSet* set = nullptr;
  Crew* const crew = NewCrew(PollingMode::kAdaptive, &set);
  auto flood = std::make_shared<Flood>();
  const auto slot = set->Add(flood);
  for (int i = 0; i < 40; ++i) {  // the first leader learns not to spin
    absl::Notification ran;
    crew->Run([&] { ran.Notify(); });
    ran.WaitForNotification();
    Flood::Pause();
  }
  Block first(crew);
  for (int i = 0; i < 10; ++i) Flood::Pause();  // the second thread leads
  first.Release();
  for (int i = 0; i < 10; ++i) Flood::Pause();  // the first thread sleeps
  flood->Set(true);
  crew->Run([] {});
  ASSERT_TRUE(flood->IsPolledSoon());
  Block second(crew);
  EXPECT_TRUE(flood->IsPolledSoon());
  flood->Set(false);
  second.Release();
  set->Remove(slot);
}

TEST(CrewForkTest, ChildHasACrewOfItsOwn) {
  Crew* const parents = *Crew::Get(PollingMode::kEvent);
  const pid_t child = fork();
  if (child == 0) {
    Crew* const own = *Crew::Get(PollingMode::kEvent);
    absl::Notification ran;
    own->Run([&] { ran.Notify(); });
    ran.WaitForNotification();
    _exit(own == parents ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*Crew::Get(PollingMode::kEvent), parents);
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
