// Tests when a thread that waits in gRPC counts as a sleeper.

#include "transport/grpc/polling/sleeper.h"

#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "absl/synchronization/notification.h"
#include "grpc/grpc.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "gtest/gtest.h"
#include "src/core/lib/iomgr/closure.h"
#include "src/core/lib/iomgr/ev_posix.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "transport/grpc/polling/polling_engine.h"

namespace penstock {
namespace core {
namespace {

// A descriptor of gRPC with one event. The event's closure calls a function.
class Event {
 public:
  explicit Event(std::function<void()> on_readable)
      : on_readable_(std::move(on_readable)) {
    grpc_core::ExecCtx exec_ctx;
    fd_ = grpc_fd_create(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "test", false);
    GRPC_CLOSURE_INIT(
        &closure_,
        [](void* self, grpc_error_handle error) {
          if (error.ok()) static_cast<Event*>(self)->on_readable_();
        },
        this, nullptr);
    grpc_fd_notify_on_read(fd_, &closure_);
  }
  ~Event() {
    grpc_core::ExecCtx exec_ctx;
    grpc_fd_shutdown(fd_, GRPC_ERROR_CREATE("the test is over"));
    grpc_fd_orphan(fd_, nullptr, nullptr, "the test is over");
  }

  void Happen() { eventfd_write(grpc_fd_wrapped_fd(fd_), 1); }

 private:
  const std::function<void()> on_readable_;
  grpc_fd* fd_ = nullptr;
  grpc_closure closure_;
};

// A thread that waits for one completion.
class SleeperTest : public testing::Test {
 protected:
  SleeperTest() {
    thread_ = std::thread([this] {
      void* tag = nullptr;
      bool ok = false;
      queue_.Next(&tag, &ok);
    });
    while (!Sleeper::Any()) std::this_thread::yield();
  }
  ~SleeperTest() override {
    if (thread_.joinable()) WakeUp();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  void WakeUp() {
    alarm_.Set(&queue_,
               std::chrono::system_clock::now() - std::chrono::seconds(1),
               this);
    thread_.join();
  }

  grpc::CompletionQueue queue_;
  grpc::Alarm alarm_;
  std::thread thread_;
};

TEST_F(SleeperTest, CountsUntilItWakesUp) {
  ASSERT_TRUE(PollingIsWrapped());
  WakeUp();
  EXPECT_FALSE(Sleeper::Any());
}

TEST_F(SleeperTest, DoesNotCountWhileAClosureBlocks) {
  absl::Notification blocked, release;
  Event event([&] {
    blocked.Notify();
    release.WaitForNotification();
  });
  event.Happen();
  blocked.WaitForNotification();
  EXPECT_FALSE(Sleeper::Any());
  release.Notify();
  WakeUp();
}

TEST_F(SleeperTest, DoesNotCountInTheChildOfAFork) {
  const pid_t child = fork();
  if (child == 0) _exit(Sleeper::Any() ? 1 : 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(Sleeper::Any());
}

// Tests a kick that arrives before the sleep. The kick must end the wait
// without an event.
TEST_F(SleeperTest, DoesNotCountAfterAKickWithoutASleep) {
  WakeUp();
  for (int i = 0; i < 100; ++i) {
    grpc::Alarm alarm;
    alarm.Set(&queue_,
              std::chrono::system_clock::now() - std::chrono::seconds(1), this);
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue_.Next(&tag, &ok));
    ASSERT_FALSE(Sleeper::Any());
  }
}

}  // namespace
}  // namespace core
}  // namespace penstock
