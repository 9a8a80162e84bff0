#include "transport/progress/aside.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "transport/progress/foreign_fd.h"

// Returns the options of ThreadSanitizer, which calls this function. Without
// this option, ThreadSanitizer kills a forked child that starts threads.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace penstock {
namespace progress {
namespace {

// A gate for tasks. Tasks share the gate, because they may run after the test
// has ended.
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

// Waits until all tasks that were added to a kind with one thread have run.
bool Flush(Aside kind = Aside::kMemory) {
  auto done = NewGate();
  RunAside(kind, [done] { done->Open(); });
  return done->Wait();
}

// Holds all threads of a kind while it exists.
class Held {
 public:
  Held(Aside kind, size_t threads) {
    for (size_t i = 0; i < threads; ++i) {
      auto taken = NewGate();
      RunAside(kind, [taken, let_go = let_go_] {
        taken->Open();
        EXPECT_TRUE(let_go->Wait());
      });
      EXPECT_TRUE(taken->Wait()) << "thread " << i;
    }
  }
  ~Held() { LetGo(); }
  void LetGo() { let_go_->Open(); }

 private:
  const std::shared_ptr<Gate> let_go_ = NewGate();
};

constexpr Aside kKinds[] = {Aside::kMemory, Aside::kClosing, Aside::kNames,
                            Aside::kStatus, Aside::kDevice};

size_t MostThreads(Aside kind) {
  if (kind == Aside::kClosing) return kMostClosingThreads;
  return kind == Aside::kNames ? kMostNameThreads : 1;
}

TEST(Aside, TasksOfOneThreadRunInOrderOnAnotherThread) {
  for (const Aside kind : {Aside::kMemory, Aside::kStatus, Aside::kDevice}) {
    auto order = std::make_shared<std::vector<int>>();
    const std::thread::id here = std::this_thread::get_id();
    for (int i = 0; i < 100; ++i) {
      RunAside(kind, [order, i, here] {
        EXPECT_NE(std::this_thread::get_id(), here);
        order->push_back(i);
      });
    }
    ASSERT_TRUE(Flush(kind));
    ASSERT_EQ(order->size(), 100u);
    for (int i = 0; i < 100; ++i) EXPECT_EQ((*order)[i], i);
  }
}

TEST(Aside, NoKindHoldsAnotherUp) {
  for (const Aside stuck : kKinds) {
    const Held held(stuck, MostThreads(stuck));
    for (const Aside other : kKinds) {
      if (other == stuck) continue;
      EXPECT_TRUE(Flush(other))
          << static_cast<int>(stuck) << " holds up " << static_cast<int>(other);
    }
  }
}

TEST(Aside, OneThatIsStuckLeavesTheOthersOfItsKind) {
  for (const Aside kind : {Aside::kClosing, Aside::kNames}) {
    const Held held(kind, MostThreads(kind) - 1);
    EXPECT_TRUE(Flush(kind));
  }
}

size_t ThreadsNamed(const std::string& name) {
  size_t count = 0;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) {
    std::string comm;
    std::ifstream(std::string("/proc/self/task/") + entry->d_name + "/comm") >>
        comm;
    count += comm == name;
  }
  closedir(tasks);
  return count;
}

TEST(Aside, ThreadsAreBounded) {
  const Held held(Aside::kClosing, kMostClosingThreads);
  for (int i = 0; i < 100; ++i) RunAside(Aside::kClosing, [] {});
  EXPECT_EQ(ThreadsNamed("penstock-close"), kMostClosingThreads);
}

TEST(Aside, TaskMayAddOthersAndNobodyWaitsForOneThatIsStuck) {
  auto stuck = NewGate();
  auto done = NewGate();
  RunAside(Aside::kMemory, [stuck, done] {
    EXPECT_TRUE(stuck->Wait());
    RunAside(Aside::kMemory, [done] { done->Open(); });
  });
  for (size_t i = 0; i < kManyTasksAside; ++i) RunAside(Aside::kMemory, [] {});
  EXPECT_GT(TasksAside(), kManyTasksAside);
  EXPECT_TRUE(IsBusyAside());
  stuck->Open();
  EXPECT_TRUE(done->Wait());
  ASSERT_TRUE(Flush());
  // Allows one task, because the last one may still be returning.
  EXPECT_LE(TasksAside(Aside::kMemory), 1u);
}

TEST(Aside, ForkedChildHasThreadsOfItsOwn) {
  Held held(Aside::kMemory, 1);
  const pid_t child = fork();
  if (child == 0) {
    bool runs = TasksAside() == 0;
    for (const Aside kind : kKinds) runs = Flush(kind) && runs;
    _exit(runs ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Tests that only tasks for a peer count.
TEST(Aside, TasksForNamesStatusAndDevicesDoNotCountAsPeers) {
  for (const Aside kind : {Aside::kNames, Aside::kStatus, Aside::kDevice}) {
    Held held(kind, MostThreads(kind));
    for (size_t i = 0; i <= kManyTasksAside; ++i) RunAside(kind, [] {});
    EXPECT_GT(TasksAside(kind), kManyTasksAside);
    EXPECT_EQ(IsBusyAsideForDevice(), kind == Aside::kDevice);
    EXPECT_FALSE(IsBusyAside());
    held.LetGo();
    ASSERT_TRUE(Flush(kind));
  }
}

TEST(ForeignFd, IsClosedBehindWhatIsStuck) {
  Held held(Aside::kClosing, kMostClosingThreads);
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
  // Expects that the descriptor is still open.
  EXPECT_EQ(fcntl(ends[0], F_GETFD), FD_CLOEXEC);
  held.LetGo();
  // Waits for several threads, which close in any order.
  while (TasksAside(Aside::kClosing) != 0) std::this_thread::yield();
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
