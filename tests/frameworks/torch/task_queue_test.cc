#include "frameworks/torch/task_queue.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "frameworks/torch/workers.h"
#include "gtest/gtest.h"

namespace penstock {
namespace pytorch {
namespace {

// The queue ends before its workers, whose destructor waits for all tasks.
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
        rig.queue->Add({[&, i] { order.push_back(i); }, {}});
      }
    }
  }
  ASSERT_EQ(order.size(), kTasks);
  for (int i = 0; i < kTasks; ++i) EXPECT_EQ(order[i], i);
}

TEST(TaskQueueTest, AThreadThatWaitsRunsTheTasksThatAreDue) {
  Rig rig;
  absl::Notification blocked, release;
  // Takes the only thread of the workers that serves this queue.
  rig.queue->Add({[] {},
                  [&] {
                    blocked.Notify();
                    release.WaitForNotification();
                  }});
  blocked.WaitForNotification();
  std::atomic<bool> done{false};
  std::thread::id ran_on;
  rig.queue->Add({[&] {
                    ran_on = std::this_thread::get_id();
                    done = true;
                  },
                  {}});
  rig.queue->WaitUntil([&] { return done.load(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  release.Notify();
}

TEST(TaskQueueTest, ACallbackMayWaitForALaterTask) {
  Rig rig;
  std::atomic<bool> later{false};
  std::atomic<bool> called{false};
  absl::Notification end;
  rig.queue->Add({[] {},
                  [&] {
                    rig.queue->Add({[&] { later = true; }, {}});
                    rig.queue->WaitUntil([&] { return later.load(); });
                    rig.queue->RunHere([&] { called = true; });
                    end.Notify();
                  }});
  end.WaitForNotification();
  EXPECT_TRUE(called);
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
        rig.queue->Add({[&] {
                          ++sum;
                          done = true;
                        },
                        {}});
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

}  // namespace
}  // namespace pytorch
}  // namespace penstock
