// Tests that a thread whose paths always have input also serves gRPC's
// descriptors, timers and closures. Measures the processor time of the serving
// thread, because other work on the machine does not change it.

#include "transport/grpc/polling/socket_turn.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "grpc/grpc.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "gtest/gtest.h"
#include "src/core/lib/iomgr/closure.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/iomgr/executor.h"
#include "transport/grpc/polling/left_input.h"
#include "transport/grpc/polling/polling_engine.h"
#include "transport/progress/poll_set.h"
#include "transport/progress/turns.h"

namespace penstock {
namespace core {
namespace {

using Clock = std::chrono::system_clock;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSlowness = 20;
#else
constexpr int kSlowness = 2;
#endif
constexpr absl::Duration kBound =
    absl::Nanoseconds(kSlowness * progress::Turns::kBoundNanos);
// The duration of a test.
constexpr absl::Duration kTime = absl::Milliseconds(30);

// Returns the processor time of the serving thread, which runs main(). Any
// thread may call this function, because a thread of gRPC's executor also polls
// the path sometimes.
absl::Duration ServingTime() {
  static const clockid_t clock = [] {
    clockid_t of_this_thread;
    pthread_getcpuclockid(pthread_self(), &of_this_thread);
    return of_this_thread;
  }();
  timespec time;
  clock_gettime(clock, &time);
  return absl::DurationFromTimespec(time);
}

// The longest time between two calls of Look().
class Gaps {
 public:
  void Look() {
    const absl::Duration now = ServingTime();
    if (looks_++ > 0) longest_ = std::max(longest_, now - last_);
    last_ = now;
  }
  int looks() const { return looks_; }
  // Returns the longest gap, including the time since the last Look().
  absl::Duration longest() const {
    return std::max(longest_, ServingTime() - last_);
  }

 private:
  int looks_ = 0;
  absl::Duration last_ = ServingTime();
  absl::Duration longest_ = absl::ZeroDuration();
};

// A path that always has input. Each poll completes an operation of the waiting
// thread, as if clients answered immediately.
class BusyPath : public progress::Pollable {
 public:
  explicit BusyPath(grpc::CompletionQueue* queue) : queue_(queue) {}
  bool Poll() override {
    gaps.Look();
    if (!outstanding) {
      outstanding = true;
      alarm_.Set(queue_, Clock::now() - std::chrono::seconds(1), this);
    }
    return true;
  }
  bool HasInput() const override { return true; }
  void SetArmed(bool) override {}

  bool outstanding = false;
  Gaps gaps;

 private:
  grpc::CompletionQueue* const queue_;
  grpc::Alarm alarm_;
};

// A descriptor that becomes readable again directly after each read. Nobody
// waits for its duplicates. A connection that receives directly has such a
// duplicate.
class Descriptor {
 public:
  explicit Descriptor(int duplicates) {
    grpc_core::ExecCtx exec_ctx;
    fd_ = grpc_fd_create(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "test", false);
    for (int i = 0; i < duplicates; ++i) {
      const int fd = fcntl(grpc_fd_wrapped_fd(fd_), F_DUPFD_CLOEXEC, 0);
      duplicates_.push_back(grpc_fd_create(fd, "test", false));
    }
    GRPC_CLOSURE_INIT(
        &closure_,
        [](void* self, grpc_error_handle error) {
          if (error.ok()) static_cast<Descriptor*>(self)->OnReadable();
        },
        this, nullptr);
    grpc_fd_notify_on_read(fd_, &closure_);
    Write();
  }
  ~Descriptor() {
    grpc_core::ExecCtx exec_ctx;
    for (grpc_fd* duplicate : duplicates_) {
      int fd = -1;
      grpc_fd_orphan(duplicate, nullptr, &fd, "the test is over");
      close(fd);
    }
    grpc_fd_shutdown(fd_, GRPC_ERROR_CREATE("the test is over"));
    grpc_fd_orphan(fd_, nullptr, nullptr, "the test is over");
  }

  Gaps gaps;

 private:
  void Write() { eventfd_write(grpc_fd_wrapped_fd(fd_), 1); }
  void OnReadable() {
    gaps.Look();
    grpc_fd_notify_on_read(fd_, &closure_);
    Write();
  }

  grpc_fd* fd_ = nullptr;
  std::vector<grpc_fd*> duplicates_;
  grpc_closure closure_;
};

class SocketTurnTest : public testing::Test {
 protected:
  SocketTurnTest() : path_(std::make_shared<BusyPath>(&queue_)) {
    slot_ = progress::PollSet::Get()->Add(path_);
    // Leaves a note. Threads that do not spin poll a path only after a note or
    // a doorbell.
    LeaveInput();
  }
  ~SocketTurnTest() override {
    progress::PollSet::Get()->Remove(slot_);
    descriptors_.clear();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  // Takes completions, like an application's thread.
  void Serve(absl::Duration time) {
    const absl::Duration end = ServingTime() + time;
    while (ServingTime() < end) TakeOne();
  }
  void* TakeOne() {
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue_.Next(&tag, &ok));
    if (tag == path_.get()) path_->outstanding = false;
    return tag;
  }
  void Watch(int count, int duplicates = 0) {
    while (count-- > 0) {
      descriptors_.push_back(std::make_unique<Descriptor>(duplicates));
    }
  }
  void ExpectLooks() {
    for (const auto& descriptor : descriptors_) {
      EXPECT_GT(descriptor->gaps.looks(), 1);
      EXPECT_LE(descriptor->gaps.longest(), kBound);
    }
  }

  grpc::CompletionQueue queue_;
  const std::shared_ptr<BusyPath> path_;
  progress::PollSet::SlotId slot_ = 0;
  std::vector<std::unique_ptr<Descriptor>> descriptors_;
};

TEST_F(SocketTurnTest, EveryDescriptorIsLookedAtWhileAPathIsBusy) {
  ASSERT_TRUE(PollingIsWrapped());
  Watch(8);
  Serve(kTime);
  ExpectLooks();
  EXPECT_GT(path_->gaps.looks(), 1);
}

TEST_F(SocketTurnTest, EventsForNobodyDoNotEndATurn) {
  Watch(16, /*duplicates=*/3);
  Serve(kTime);
  ExpectLooks();
}

TEST_F(SocketTurnTest, APathIsPolledWhileDescriptorsAreBusy) {
  Watch(200);  // more than fits into one turn
  Serve(kTime);
  EXPECT_LE(path_->gaps.longest(), kBound);
  for (const auto& descriptor : descriptors_) {
    EXPECT_GT(descriptor->gaps.looks(), 1);
  }
}

TEST_F(SocketTurnTest, ATimerRunsWhileAPathIsBusy) {
  grpc::Alarm alarm;
  alarm.Set(&queue_, Clock::now() + std::chrono::milliseconds(5), &alarm);
  const auto end = Clock::now() + std::chrono::seconds(10);
  bool rang = false;
  while (!rang && Clock::now() < end) rang = TakeOne() == &alarm;
  EXPECT_TRUE(rang);
}

TEST_F(SocketTurnTest, AClosureRunsWhileAPathIsBusy) {
  std::atomic<bool> has_run{false};
  {
    grpc_core::ExecCtx exec_ctx;
    grpc_core::Executor::Run(
        grpc_core::NewClosure([&](grpc_error_handle) { has_run = true; }),
        absl::OkStatus());
  }
  const auto end = Clock::now() + std::chrono::seconds(10);
  while (!has_run && Clock::now() < end) TakeOne();
  EXPECT_TRUE(has_run);
}

}  // namespace
}  // namespace core
}  // namespace penstock
