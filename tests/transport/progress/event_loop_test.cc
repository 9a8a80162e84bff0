#include "transport/progress/event_loop.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "transport/base/unique_fd.h"
#include "transport/progress/poll_set.h"

// Returns the options of ThreadSanitizer, which calls this function. Without
// this option, ThreadSanitizer kills a forked child that starts threads.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace penstock {
namespace progress {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(20);

// A notification that ThreadSanitizer understands, unlike absl::Notification.
class Notification {
 public:
  void Notify() {
    std::lock_guard<std::mutex> lock(mu_);
    done_ = true;
    changed_.notify_all();
  }
  bool Wait() {
    std::unique_lock<std::mutex> lock(mu_);
    return changed_.wait_for(lock, absl::ToChronoSeconds(kDeadline),
                             [this] { return done_; });
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool done_ = false;  // guarded by mu_
};

// A notification. Callbacks share it, because they may run after the test has
// ended.
using Signal = std::shared_ptr<Notification>;
Signal NewSignal() { return std::make_shared<Notification>(); }

// Tests of both kinds of loop. The parameter is true if the loop itself polls.
// The tests always have something to poll.
class EventLoopTest : public testing::TestWithParam<bool> {
 protected:
  EventLoopTest() : slot_(PollSet::Get()->Add(std::make_shared<Nothing>())) {}
  ~EventLoopTest() override { PollSet::Get()->Remove(slot_); }

  static EventLoop* Loop() {
    return (GetParam() ? EventLoop::GetPolling(PollingMode::kAdaptive)
                       : EventLoop::Get())
        .value();
  }
  // Waits until everything that was posted before has run.
  static void Flush() {
    Signal done = NewSignal();
    Loop()->Post([done] { done->Notify(); });
    ASSERT_TRUE(done->Wait());
  }

 private:
  class Nothing : public Pollable {
   public:
    bool Poll() override { return false; }
    bool HasInput() const override { return false; }
    void SetArmed(bool) override {}
  };

  const PollSet::SlotId slot_;
};

struct Pipe {
  Pipe() {
    int fds[2];
    EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
    in.Reset(fds[1]);
    out.Reset(fds[0]);
  }
  base::UniqueFd in;
  base::UniqueFd out;
};

TEST_P(EventLoopTest, PostedCallsRunInOrder) {
  auto order = std::make_shared<std::vector<int>>();
  for (int i = 0; i < 100; ++i) {
    Loop()->Post([order, i] { order->push_back(i); });
  }
  Flush();
  ASSERT_EQ(order->size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ((*order)[i], i);
}

TEST_P(EventLoopTest, TimersRunInTheirOrderAndNotEarly) {
  const absl::Time begin = absl::Now();
  auto order = std::make_shared<std::vector<int>>();
  Signal done = NewSignal();
  Loop()->RunAfter(absl::Milliseconds(30), [order, done] {
    order->push_back(2);
    done->Notify();
  });
  Loop()->RunAfter(absl::Milliseconds(10), [order] { order->push_back(1); });
  ASSERT_TRUE(done->Wait());
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(29));
  EXPECT_EQ(*order, (std::vector<int>{1, 2}));
}

TEST_P(EventLoopTest, CancelledTimerDoesNotRun) {
  auto runs = std::make_shared<std::atomic<int>>(0);
  Signal done = NewSignal();
  EventLoop::Id id =
      Loop()->RunAfter(absl::Milliseconds(5), [runs] { ++*runs; });
  Loop()->RunAfter(absl::Milliseconds(10), [done] { done->Notify(); });
  EXPECT_TRUE(Loop()->Cancel(id));
  EXPECT_FALSE(Loop()->Cancel(id));
  ASSERT_TRUE(done->Wait());
  EXPECT_EQ(*runs, 0);
}

TEST_P(EventLoopTest, EndlessDelaysDoNotEnd) {
  auto runs = std::make_shared<std::atomic<int>>(0);
  for (const absl::Duration delay :
       {absl::InfiniteDuration(), absl::Hours(24 * 365 * 290),
        absl::Seconds(INT64_MAX)}) {
    const EventLoop::Id id = Loop()->RunAfter(delay, [runs] { ++*runs; });
    Signal done = NewSignal();
    Loop()->RunAfter(absl::Milliseconds(1), [done] { done->Notify(); });
    ASSERT_TRUE(done->Wait());
    EXPECT_TRUE(Loop()->Cancel(id));
  }
  EXPECT_EQ(*runs, 0);
}

TEST_P(EventLoopTest, WatchSeesInputUntilUnwatched) {
  Pipe pipe;
  auto calls = std::make_shared<std::atomic<int>>(0);
  Signal first = NewSignal();
  const int out = pipe.out.get();
  auto id = Loop()->Watch(out, EPOLLIN, [out, calls, first](uint32_t events) {
    EXPECT_TRUE(events & EPOLLIN);
    char byte;
    EXPECT_EQ(read(out, &byte, 1), 1);
    if (++*calls == 1) first->Notify();
  });
  ASSERT_TRUE(id.ok()) << id.status();
  ASSERT_EQ(write(pipe.in.get(), "x", 1), 1);
  ASSERT_TRUE(first->Wait());
  Loop()->Unwatch(*id);
  ASSERT_EQ(write(pipe.in.get(), "x", 1), 1);
  Flush();
  Flush();
  EXPECT_EQ(*calls, 1);
}

TEST_P(EventLoopTest, CallbackMayUnwatchItself) {
  Pipe pipe;
  auto id = std::make_shared<std::atomic<EventLoop::Id>>(0);
  auto calls = std::make_shared<std::atomic<int>>(0);
  Signal done = NewSignal();
  Loop()->Post([&pipe, id, calls, done] {
    *id = Loop()
              ->Watch(pipe.out.get(), EPOLLIN,
                      [id, calls, done](uint32_t events) {
                        EXPECT_TRUE(events & EPOLLHUP);
                        Loop()->Unwatch(*id);
                        if (++*calls == 1) done->Notify();
                      })
              .value();
  });
  Flush();
  pipe.in.Reset();
  ASSERT_TRUE(done->Wait());
  Flush();
  EXPECT_EQ(*calls, 1);
}

TEST_P(EventLoopTest, KnowsItsThread) {
  EXPECT_FALSE(Loop()->IsCurrent());
  EventLoop* const loop = Loop();
  auto is_current = std::make_shared<bool>(false);
  loop->Post([loop, is_current] { *is_current = loop->IsCurrent(); });
  Flush();
  EXPECT_TRUE(*is_current);
}

TEST_P(EventLoopTest, SetEventsChangesWhatIsAwaited) {
  int pipe[2];
  ASSERT_EQ(pipe2(pipe, O_NONBLOCK | O_CLOEXEC), 0);
  base::UniqueFd out(pipe[0]);
  base::UniqueFd in(pipe[1]);
  auto calls = std::make_shared<std::atomic<int>>(0);
  Signal called = NewSignal();
  auto id = Loop()->Watch(out.get(), 0, [calls, called](uint32_t) {
    ++*calls;
    called->Notify();
  });
  ASSERT_TRUE(id.ok());
  ASSERT_EQ(write(in.get(), "x", 1), 1);
  Flush();
  EXPECT_EQ(*calls, 0);
  Loop()->SetEvents(*id, EPOLLIN);
  EXPECT_TRUE(called->Wait());
  Loop()->SetEvents(*id, 0);
  Flush();
  const int before = *calls;
  Flush();
  EXPECT_EQ(*calls, before);
  Loop()->Unwatch(*id);
  Loop()->SetEvents(*id, EPOLLIN);  // the call has no effect
}

TEST_P(EventLoopTest, WatchOfABadDescriptorIsAnError) {
  EXPECT_FALSE(Loop()->Watch(-1, EPOLLIN, [](uint32_t) {}).ok());
}

TEST_P(EventLoopTest, ForkedChildHasALoopOfItsOwnAndExits) {
  EventLoop* parents = Loop();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    parents->Post([] { _exit(2); });  // the task never runs
    Notification done;
    Loop()->Post([&done] { done.Notify(); });
    if (!done.Wait()) _exit(3);
    exit(Loop() == parents ? 4 : 0);  // runs all exit handlers
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

INSTANTIATE_TEST_SUITE_P(All, EventLoopTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Polling" : "Sleeping";
                         });

}  // namespace
}  // namespace progress
}  // namespace penstock
