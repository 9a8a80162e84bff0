// Tests how the thread that waits for gRPC's sockets polls before it sleeps.
// The test imitates gRPC's epoll1 engine: how it selects the thread, reads the
// time, sleeps, and runs closures.

#include "transport/grpc/polling/socket_spin.h"

#include <memory>

#include "absl/time/time.h"
#include "grpc/grpc.h"
#include "gtest/gtest.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "tests/transport/base/set_clock.h"
#include "transport/base/steady_time.h"

namespace penstock {
namespace core {
namespace {

class FakePath : public progress::Pollable {
 public:
  bool Poll() override {
    input = false;
    ++polls;
    return true;
  }
  bool HasInput() const override { return input; }
  void SetArmed(bool armed) override {
    if (armed && comes_as_it_is_armed) input = true;
    comes_as_it_is_armed = false;
  }

  bool input = false;
  bool comes_as_it_is_armed = false;
  int polls = 0;
};

class SocketSpinTest : public testing::Test {
 protected:
  SocketSpinTest() { grpc_init(); }
  ~SocketSpinTest() override { grpc_shutdown(); }

  // Imitates one wait, in which epoll_wait() takes `sleep`. Returns the time
  // from which gRPC would compute the timeout of epoll_wait().
  grpc_core::Timestamp Wait(progress::SpinPolicy* policy,
                            absl::Duration sleep = absl::ZeroDuration()) {
    grpc_core::ExecCtx context;
    looks_ = 0;
    const SpinSources sources = {[this] { return ++looks_ == event_at_look_; },
                                 &paths_, policy};
    SocketSpin spin(sources, nullptr, grpc_core::Timestamp::InfFuture());
    deadline_ = spin.deadline();
    *spin.worker() = reinterpret_cast<grpc_pollset_worker*>(this);
    const grpc_core::Timestamp now = context.Now();
    Pass(sleep);
    *spin.worker() = nullptr;
    context.Flush();
    return now;
  }
  // Moves the clock forward without waiting.
  void Pass(absl::Duration time) { MoveSteadyClockBy(time); }

  progress::PollSet paths_{1};
  int looks_ = 0;
  int event_at_look_ = 0;  // 0: never
  grpc_core::Timestamp deadline_;
};

TEST_F(SocketSpinTest, LooksUntilAnEventComes) {
  progress::SpinPolicy policy(progress::PollingMode::kBusy);
  event_at_look_ = 5;
  EXPECT_LT(Wait(&policy), deadline_) << "epoll_wait() handles the event";
  EXPECT_EQ(looks_, 5);
}

TEST_F(SocketSpinTest, DoesNotLookInEventMode) {
  progress::SpinPolicy policy(progress::PollingMode::kEvent);
  EXPECT_LT(Wait(&policy), deadline_);
  EXPECT_EQ(looks_, 0);
}

TEST_F(SocketSpinTest, OnlyTheDesignatedPollerLooks) {
  progress::SpinPolicy policy(progress::PollingMode::kBusy);
  grpc_core::ExecCtx context;
  const SpinSources sources = {[this] { return ++looks_ > 0; }, &paths_,
                               &policy};
  SocketSpin spin(sources, nullptr, grpc_core::Timestamp::InfFuture());
  context.Now();
  EXPECT_EQ(looks_, 0);
}

// Reads the time again after the wait. This must not cause another poll.
TEST_F(SocketSpinTest, LooksOncePerWait) {
  progress::SpinPolicy policy(progress::PollingMode::kBusy);
  grpc_core::ExecCtx context;
  const SpinSources sources = {[this] { return ++looks_ > 0; }, &paths_,
                               &policy};
  SocketSpin spin(sources, nullptr, grpc_core::Timestamp::InfFuture());
  *spin.worker() = reinterpret_cast<grpc_pollset_worker*>(this);
  context.Now();
  context.InvalidateNow();
  context.Now();
  EXPECT_EQ(looks_, 1);
}

// Tests waits in which nothing comes, as with a peer that is dead or silent.
TEST_F(SocketSpinTest, SleepsAtOnceIfNothingEverComesSoon) {
  progress::SpinPolicy policy(progress::PollingMode::kAdaptive);
  for (int i = 0; i < 100; ++i) Wait(&policy, absl::Seconds(1));
  // Waits for the end of a pause of spinning. Spinning pauses if other programs
  // take the core.
  Pass(absl::Nanoseconds(progress::SpinPolicy::kMaxRestNanos));
  Wait(&policy, absl::Seconds(1));
  EXPECT_EQ(looks_, 0);
}

TEST_F(SocketSpinTest, LooksAgainOnceEventsComeSoon) {
  progress::SpinPolicy policy(progress::PollingMode::kAdaptive);
  for (int i = 0; i < 100; ++i) Wait(&policy, absl::Seconds(1));
  // Tries many times. Other programs may delay a wait or take the core.
  for (int i = 0; i < 1000 && looks_ == 0; ++i) {
    Pass(absl::Nanoseconds(progress::SpinPolicy::kMaxRestNanos));
    Wait(&policy);
  }
  EXPECT_GT(looks_, 0);
}

TEST_F(SocketSpinTest, StopsOnceAnotherThreadHasLostItsCore) {
  progress::SpinPolicy policy(progress::PollingMode::kAdaptive);
  // Lets the policy learn its longest spin.
  for (int i = 0; i < 100; ++i) policy.Record(true, absl::Microseconds(1));
  const auto look = [&] {
    ++looks_;
    policy.RecordCostlyYield(absl::Milliseconds(4), base::SteadyNow());
    return false;
  };
  grpc_core::ExecCtx context;
  const SpinSources sources = {look, &paths_, &policy};
  SocketSpin spin(sources, nullptr, grpc_core::Timestamp::InfFuture());
  *spin.worker() = reinterpret_cast<grpc_pollset_worker*>(this);
  EXPECT_LT(context.Now(), spin.deadline()) << "epoll_wait() sleeps";
  *spin.worker() = nullptr;
  context.Flush();
  EXPECT_EQ(looks_, 1);
}

TEST_F(SocketSpinTest, TheTimeAfterASpinIsThePresent) {
  progress::SpinPolicy policy(progress::PollingMode::kBusy);
  grpc_core::ExecCtx context;
  const SpinSources sources = {[this] {
                                 if (looks_ == 0) Pass(absl::Seconds(1));
                                 return ++looks_ > 1;
                               },
                               &paths_, &policy};
  const grpc_core::Timestamp before = context.Now();
  SocketSpin spin(sources, nullptr, grpc_core::Timestamp::InfFuture());
  *spin.worker() = reinterpret_cast<grpc_pollset_worker*>(this);
  EXPECT_GE(context.Now(), before + grpc_core::Duration::Seconds(1));
}

TEST_F(SocketSpinTest, InputOfAPathEndsTheWait) {
  progress::SpinPolicy policy(progress::PollingMode::kBusy);
  auto path = std::make_shared<FakePath>();
  const progress::PollSet::SlotId slot = paths_.Add(path);
  path->input = true;
  EXPECT_EQ(Wait(&policy), deadline_) << "epoll_wait() must not sleep";
  EXPECT_EQ(path->polls, 1);
  paths_.Remove(slot);
}

TEST_F(SocketSpinTest, DoesNotLookIfEnoughThreadsSpin) {
  progress::SpinPolicy policy(progress::PollingMode::kBusy);
  ASSERT_TRUE(paths_.BeginSpin());
  EXPECT_LT(Wait(&policy), deadline_);
  EXPECT_EQ(looks_, 0);
  paths_.EndSpin();
}

}  // namespace
}  // namespace core
}  // namespace penstock
