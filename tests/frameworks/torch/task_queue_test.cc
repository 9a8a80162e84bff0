#include "frameworks/torch/task_queue.h"

#include <sys/resource.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "frameworks/torch/workers.h"
#include "gtest/gtest.h"

namespace penstock {
namespace pytorch {
namespace {

// A rig in which the queue is destroyed before its workers. The destructor of
// the workers waits for all tasks.
struct Rig {
  Workers workers;
  std::shared_ptr<TaskQueue> queue = std::make_shared<TaskQueue>(&workers);
};

TEST(TaskQueueTest, TasksRunInTheirOrderOneAtATime) {
  constexpr int kTasks = 1000;
  std::vector<int> order;
  {
    Rig rig;
    for (int i = 0; i < kTasks; ++i) {
      if (i % 7 == 3) {
        rig.queue->RunHere([&] { order.push_back(i); });
      } else {
        rig.queue->Add([&, i] { order.push_back(i); });
      }
    }
  }
  ASSERT_EQ(order.size(), kTasks);
  for (int i = 0; i < kTasks; ++i) EXPECT_EQ(order[i], i);
}

TEST(TaskQueueTest, AThreadThatWaitsRunsTheTasksThatAreDue) {
  Rig rig;
  absl::Notification blocked, release;
  // Blocks the only worker thread that serves this queue. Releasing the objects
  // of a task must not delay a later task.
  const auto block = [&](int*) {
    blocked.Notify();
    release.WaitForNotification();
  };
  rig.queue->Add([held = std::shared_ptr<int>(nullptr, block)] {});
  blocked.WaitForNotification();
  std::atomic<bool> done{false};
  std::thread::id ran_on;
  rig.queue->Add([&] {
    ran_on = std::this_thread::get_id();
    done = true;
  });
  rig.queue->WaitUntil([&] { return done.load(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  release.Notify();
}

TEST(TaskQueueTest, ASequelMayWaitForALaterTask) {
  Rig rig;
  std::atomic<bool> later{false}, over{false};
  absl::Notification added;
  rig.queue->AddWithSequel([&]() -> TaskQueue::Task {
    added.WaitForNotification();
    return [&] {
      rig.queue->WaitUntil([&] { return later.load(); });
      over = true;
    };
  });
  rig.queue->Add([&] { later = true; });
  added.Notify();
  rig.queue->WaitUntil([&] { return later.load(); });
  while (!over) std::this_thread::yield();
}

TEST(TaskQueueTest, ManyThreadsGetTheirTurns) {
  Rig rig;
  int sum = 0;  // guarded by the queue
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        std::atomic<bool> done{false};
        rig.queue->RunHere([&] { ++sum; });
        rig.queue->Add([&] {
          ++sum;
          done = true;
        });
        rig.queue->WaitUntil([&] { return done.load(); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  rig.queue->RunHere([&] { EXPECT_EQ(sum, 4 * 500 * 2); });
  EXPECT_TRUE(rig.queue->idle());
}

TEST(WorkersTest, ATaskThatWaitsDelaysNoOther) {
  Workers workers;
  absl::Notification first, second;
  workers.Run([&] { second.WaitForNotification(); });
  workers.Run([&] {
    first.WaitForNotification();
    second.Notify();
  });
  workers.Run([&] { first.Notify(); });
  second.WaitForNotification();
}

TEST(WorkersTest, ATaskMayDestroyItsWorkers) {
  auto workers = std::make_unique<Workers>();
  absl::Notification other, end;
  workers->Run([&] { other.WaitForNotification(); });
  workers->Run([&] {
    other.Notify();
    workers.reset();
    end.Notify();
  });
  end.WaitForNotification();
}

// Makes the system refuse new threads, because there is no memory for their
// stacks.
class NoThreads {
 public:
  NoThreads() {
    getrlimit(RLIMIT_AS, &before_);
    rlimit none = before_;
    none.rlim_cur = 1;
    setrlimit(RLIMIT_AS, &none);
  }
  ~NoThreads() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_;
};

TEST(WorkersTest, WithoutThreadsTheCallerRunsTheTask) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer itself needs memory for a thread";
#endif
  Rig rig;
  const std::thread::id here = std::this_thread::get_id();
  absl::Notification release;
  bool ran_here = false;
  std::thread::id queued_on;
  {
    const NoThreads limit;
    // Tries several times, because the first tasks may get stacks of earlier
    // threads.
    for (int i = 0; i < 100 && !ran_here; ++i) {
      rig.workers.Run([&] {
        if (std::this_thread::get_id() != here) {
          release.WaitForNotification();
        } else {
          ran_here = true;
        }
      });
    }
    rig.queue->Add([&] { queued_on = std::this_thread::get_id(); });
  }
  EXPECT_TRUE(ran_here);
  EXPECT_EQ(queued_on, here);
  release.Notify();
}

}  // namespace
}  // namespace pytorch
}  // namespace penstock
