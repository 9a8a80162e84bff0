#include "transport/progress/aside.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "transport/progress/foreign_fd.h"

// For ThreadSanitizer, which by default kills a forked child that makes
// threads.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace penstock {
namespace progress {
namespace {

// Shared with tasks, which may run after the test has gone on.
class Gate {
 public:
  void Open() {
    std::lock_guard<std::mutex> lock(mu_);
    open_ = true;
    changed_.notify_all();
  }
  bool Wait() {
    std::unique_lock<std::mutex> lock(mu_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [this] { return open_; });
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool open_ = false;
};

std::shared_ptr<Gate> NewGate() { return std::make_shared<Gate>(); }

// Everything that was added before has run.
bool Flush() {
  auto done = NewGate();
  RunAside([done] { done->Open(); });
  return done->Wait();
}

TEST(Aside, TasksRunInOrderOnAnotherThread) {
  auto order = std::make_shared<std::vector<int>>();
  const std::thread::id here = std::this_thread::get_id();
  for (int i = 0; i < 100; ++i) {
    RunAside([order, i, here] {
      EXPECT_NE(std::this_thread::get_id(), here);
      order->push_back(i);
    });
  }
  ASSERT_TRUE(Flush());
  ASSERT_EQ(order->size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ((*order)[i], i);
}

TEST(Aside, TaskMayAddOthersAndNobodyWaitsForOneThatIsStuck) {
  auto stuck = NewGate();
  auto done = NewGate();
  RunAside([stuck, done] {
    EXPECT_TRUE(stuck->Wait());
    RunAside([done] { done->Open(); });
  });
  for (size_t i = 0; i < kManyTasksAside; ++i) RunAside([] {});
  EXPECT_GT(TasksAside(), kManyTasksAside);
  EXPECT_TRUE(IsBusyAside());
  stuck->Open();
  EXPECT_TRUE(done->Wait());
  ASSERT_TRUE(Flush());
  EXPECT_LE(TasksAside(), 1u);  // the last one may be about to return
}

TEST(Aside, ForkedChildHasAThreadOfItsOwn) {
  auto stuck = NewGate();
  RunAside([stuck] { EXPECT_TRUE(stuck->Wait()); });
  const pid_t child = fork();
  if (child == 0) {
    auto done = NewGate();
    RunAsideForDevice([done] { done->Open(); });
    _exit(TasksAside() == 0 && Flush() && done->Wait() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  stuck->Open();
  EXPECT_TRUE(Flush());
}

TEST(AsideForDevice, TasksRunInOrderOnAThreadOfTheirOwn) {
  auto stuck = NewGate();
  RunAside([stuck] { EXPECT_TRUE(stuck->Wait()); });
  auto order = std::make_shared<std::vector<int>>();
  auto done = NewGate();
  for (int i = 0; i < 100; ++i) {
    RunAsideForDevice([order, i] { order->push_back(i); });
  }
  RunAsideForDevice([done] { done->Open(); });
  EXPECT_TRUE(done->Wait());
  ASSERT_EQ(order->size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ((*order)[i], i);
  stuck->Open();
  EXPECT_TRUE(Flush());
}

TEST(AsideForDevice, TasksNeitherCountNorHoldUpOthers) {
  auto stuck = NewGate();
  for (size_t i = 0; i <= kManyTasksAside; ++i) {
    RunAsideForDevice([stuck] { EXPECT_TRUE(stuck->Wait()); });
  }
  EXPECT_TRUE(Flush());
  EXPECT_FALSE(IsBusyAside());
  EXPECT_TRUE(IsBusyAsideForDevice());
  auto done = NewGate();
  RunAsideForDevice([done] { done->Open(); });
  stuck->Open();
  EXPECT_TRUE(done->Wait());
  EXPECT_FALSE(IsBusyAsideForDevice());
}

TEST(ForeignFd, IsClosedBehindWhatIsStuck) {
  auto stuck = NewGate();
  RunAside([stuck] { EXPECT_TRUE(stuck->Wait()); });
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const base::UniqueFd other(ends[1]);
  {
    ForeignFd first{base::UniqueFd(ends[0])};
    EXPECT_TRUE(first.valid());
    ForeignFd second(std::move(first));
    first = std::move(second);
    EXPECT_EQ(first.get(), ends[0]);
  }
  EXPECT_EQ(fcntl(ends[0], F_GETFD), FD_CLOEXEC);  // still open
  stuck->Open();
  ASSERT_TRUE(Flush());
  EXPECT_EQ(fcntl(ends[0], F_GETFD), -1);
}

TEST(ForeignFd, OfAForkedChildsParentIsClosedAtOnce) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const base::UniqueFd other(ends[1]);
  ForeignFd fd{base::UniqueFd(ends[0])};
  const pid_t child = fork();
  if (child == 0) {
    const bool is_of_parent = fd.is_of_parent();
    fd.Reset();
    _exit(is_of_parent && fcntl(ends[0], F_GETFD) == -1 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(fd.is_of_parent());
}

}  // namespace
}  // namespace progress
}  // namespace penstock
