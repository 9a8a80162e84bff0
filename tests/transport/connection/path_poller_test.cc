#include "transport/connection/path_poller.h"

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "transport/base/descriptors.h"
#include "transport/paths/path_relief.h"

namespace penstock {
namespace connection {
namespace {

// A fake path, which implements only the calls of a poller.
class FakePath : public fabric::Endpoint {
 public:
  const fabric::Capabilities& capabilities() const override {
    return capabilities_;
  }
  std::string Describe() const override { return "fake"; }
  void Start(fabric::EndpointEvents*) override {}
  bool Send(absl::Span<const uint8_t>) override { return false; }
  absl::StatusOr<fabric::Exposure> Expose(const memory::Payload&,
                                          size_t) override {
    return absl::UnimplementedError("fake");
  }
  void Withdraw(const fabric::RemoteRegion&) override {}
  void Read(const fabric::RemotePart&, uint64_t, absl::Span<uint8_t>,
            uint64_t) override {}
  bool Poll() override { return false; }
  bool HasInput() const override { return input; }
  void SetArmed(bool value) override {
    armed = value;
    if (value && on_armed) on_armed();
  }
  void ClearWakeup() override {
    ++cleared;
    if (on_cleared) on_cleared();
  }
  bool TakeDoorbellRequest() override { return false; }
  void RingDoorbell() override {}

  bool input = false;
  bool armed = false;
  int cleared = 0;
  std::function<void()> on_armed;
  std::function<void()> on_cleared;

 private:
  const fabric::Capabilities capabilities_;
};

class FakeExecutor : public Executor {
 public:
  absl::Time Now() const override { return absl::UnixEpoch(); }
  void Post(std::function<void()> task) override {
    tasks.push_back(std::move(task));
  }
  Id RunAfter(absl::Duration, std::function<void(bool is_due)>) override {
    return 0;
  }
  void Cancel(Id) override {}

  void RunOne() {
    const std::function<void()> task = std::move(tasks.front());
    tasks.pop_front();
    task();
  }

  std::deque<std::function<void()>> tasks;
};

class FakeOwner : public PathPoller::Owner {
 public:
  bool PollPath() override {
    ++polls;
    return true;
  }
  void LeaveInput() override { ++left; }
  bool MayGiveUpPath() const override { return may_give_up; }
  void GiveUpPath(const absl::Status&) override {
    ++given_up;
    Unref();
  }
  void Ref() override { ++refs; }
  void Unref() override { --refs; }

  int polls = 0;
  int left = 0;
  int given_up = 0;
  int refs = 0;
  bool may_give_up = true;
};

class PathPollerTest : public testing::Test {
 protected:
  FakeExecutor executor_;
  FakeOwner owner_;
  base::Mutex mu_;
  PathPoller poller_{&owner_, &executor_, &mu_};
  const std::shared_ptr<FakePath> path_ = std::make_shared<FakePath>();
};

TEST_F(PathPollerTest, PathIsPolledWhileItIsWatched) {
  poller_.Watch(path_);
  EXPECT_TRUE(path_->armed);
  EXPECT_EQ(owner_.refs, 1);
  path_->input = true;
  EXPECT_TRUE(progress::PollSet::Get()->PollAll());
  EXPECT_EQ(owner_.polls, 1);
  poller_.Watch(nullptr);
  EXPECT_FALSE(progress::PollSet::Get()->PollAll());
  EXPECT_EQ(owner_.polls, 1);
  EXPECT_EQ(owner_.refs, 0);
}

TEST_F(PathPollerTest, WhatCameBeforeTheArmingIsScheduled) {
  path_->input = true;
  poller_.Watch(path_);
  EXPECT_EQ(executor_.tasks.size(), 1);
  poller_.Watch(path_);  // no new input
  EXPECT_EQ(executor_.tasks.size(), 1);
}

TEST_F(PathPollerTest, InputThatRemainsAfterSeveralPollsIsLeft) {
  path_->input = true;
  poller_.Watch(path_);
  for (int poll = 1; poll <= PathPoller::kPolls; ++poll) {
    EXPECT_EQ(owner_.left, 0);
    EXPECT_EQ(owner_.refs, 2);  // one of the PollSet, one of the task
    executor_.RunOne();
    EXPECT_EQ(owner_.polls, poll);
  }
  EXPECT_EQ(owner_.left, 1);
  EXPECT_EQ(owner_.refs, 1);
  EXPECT_TRUE(executor_.tasks.empty());
}

// Tests input that arrives while the path is being armed. The peer saw an
// unarmed path, and therefore does not ring.
TEST_F(PathPollerTest, WhatComesWhileThePathIsArmedIsScheduled) {
  path_->on_armed = [this] { path_->input = true; };
  poller_.Watch(path_);
  EXPECT_EQ(executor_.tasks.size(), 1);
}

// Tests that a thread polls before ClearWakeup(), and checks for input
// afterwards. The peer does not ring before ClearWakeup().
TEST_F(PathPollerTest, WakeUpIsClearedBetweenTwoLooks) {
  poller_.Watch(path_);
  path_->input = true;
  path_->on_cleared = [this] { EXPECT_EQ(owner_.polls, 1); };
  poller_.OnWakeup(path_);
  EXPECT_EQ(path_->cleared, 1);
  EXPECT_EQ(executor_.tasks.size(), 1);

  // Wakes the poller without input, as a path does when it must be polled to
  // probe its device.
  path_->input = false;
  path_->on_cleared = [this] { path_->input = true; };
  poller_.OnWakeup(path_);
  EXPECT_EQ(owner_.polls, 2);
  EXPECT_EQ(path_->cleared, 2);
  EXPECT_EQ(executor_.tasks.size(), 2);
}

TEST_F(PathPollerTest, WakeUpOfAnEarlierPathIsIgnored) {
  poller_.Watch(path_);
  poller_.Watch(nullptr);
  poller_.OnWakeup(path_);
  EXPECT_EQ(path_->cleared, 0);
  EXPECT_TRUE(executor_.tasks.empty());
}

base::Descriptors OneTooMany() {
  base::Descriptors now;
  now.limit = 100;
  now.free = 25;
  return now;
}

TEST_F(PathPollerTest, PathMayBeGivenUpWhileItIsWatched) {
  paths::PathRelief::Get()->Relieve(OneTooMany());
  EXPECT_EQ(owner_.given_up, 0);
  poller_.Watch(path_);
  paths::PathRelief::Get()->Relieve(OneTooMany());
  EXPECT_EQ(owner_.given_up, 1);
  EXPECT_EQ(owner_.refs, 1);
}

TEST_F(PathPollerTest, PathThatIsGoneIsNotGivenUp) {
  poller_.Watch(path_);
  poller_.Watch(nullptr);
  base::Descriptors none;
  none.limit = 100;
  paths::PathRelief::Get()->Relieve(none);
  EXPECT_EQ(owner_.given_up, 0);
}

TEST_F(PathPollerTest, RequiredPathIsNotGivenUp) {
  owner_.may_give_up = false;
  poller_.Watch(path_);
  base::Descriptors none;
  none.limit = 100;
  paths::PathRelief::Get()->Relieve(none);
  EXPECT_EQ(owner_.given_up, 0);
}

TEST_F(PathPollerTest, NothingIsScheduledForAPathWithoutInput) {
  poller_.Watch(path_);
  EXPECT_TRUE(executor_.tasks.empty());
}

}  // namespace
}  // namespace connection
}  // namespace penstock
