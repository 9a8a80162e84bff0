// Tasks that run one after another, on any thread.

#ifndef PENSTOCK_FRAMEWORKS_TORCH_TASK_QUEUE_H_
#define PENSTOCK_FRAMEWORKS_TORCH_TASK_QUEUE_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "frameworks/torch/workers.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace pytorch {

// Runs tasks in the order of Add() and RunHere(). A waiting thread runs the
// tasks that come first, so a caller that adds a task and waits for it needs no
// other thread. A task must not wait for a later task.
//
// Thread-safe. Owned by shared_ptr, because a thread of Workers may be the last
// user.
class TaskQueue : public std::enable_shared_from_this<TaskQueue> {
 public:
  using Task = std::function<void()>;
  // A task that returns a sequel, or null. The same thread runs the sequel
  // after the task's turn has ended. A sequel may wait for later tasks.
  using TaskWithSequel = std::function<Task()>;

  // `workers` must outlive all tasks.
  explicit TaskQueue(Workers* workers) : workers_(workers) {}
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // Runs the task on a thread of `workers`, or of a caller that waits.
  void Add(Task task);
  void AddWithSequel(TaskWithSequel task);

  // Runs `run` in this thread, after all earlier tasks, and waits for its end.
  void RunHere(absl::FunctionRef<void()> run);

  // Waits until `done` returns true, and runs tasks meanwhile. `done` must
  // become true by a task of this queue. Calls `done` without a lock.
  void WaitUntil(absl::FunctionRef<bool()> done);

  // Returns true if no task waits or runs.
  bool idle();

 private:
  struct Entry {
    uint64_t ticket;
    TaskWithSequel task;
  };

  // Runs the first task, if its turn has come.
  bool RunNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndTurn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Drain();

  Workers* const workers_;
  base::Mutex mu_;
  std::condition_variable_any changed_;
  // The ticket of the next call, and the ticket whose turn it is.
  uint64_t next_ticket_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t turn_ ABSL_GUARDED_BY(mu_) = 0;
  // The waiting tasks, without the running one.
  std::deque<Entry> tasks_ ABSL_GUARDED_BY(mu_);
  int waiters_ ABSL_GUARDED_BY(mu_) = 0;
  // True while a thread of workers_ runs tasks_.
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace pytorch
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TORCH_TASK_QUEUE_H_
