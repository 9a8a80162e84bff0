// Threads that poll paths and run the resulting tasks.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_THREADS_CREW_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_THREADS_CREW_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/event_engine/threads/watches.h"
#include "transport/progress/poll_set.h"
#include "transport/progress/spin_policy.h"

namespace penstock {
namespace event_engine {

// The threads that run gRPC's tasks. One thread, the leader, polls the PollSet
// and runs tasks. While the leader polls, a new task wakes no thread. Without
// input the leader sleeps, as SpinPolicy says.
//
// Tasks may block. Another thread, the guard, checks the leader every
// kTickMillis. If the leader runs the same task for two ticks, another thread
// becomes the leader, and the old leader parks or ends after its task. A
// blocking task therefore delays other tasks by at most three ticks. If many
// tasks wait, further threads help, up to one for each usable core.
//
// Thread-safe. Lives as long as the process. In the child of a fork, Get()
// makes a new crew.
class Crew {
 public:
  using Task = absl::AnyInvocable<void()>;

  static constexpr int kTickMillis = 1;
  // Caps the threads of the crew. A thread for each task may be needed if all
  // tasks block.
  static constexpr size_t kMaxThreads = 1000;

  // Returns the crew of the process. The first call makes it, with `mode`.
  static absl::StatusOr<Crew*> Get(progress::PollingMode mode);
  // Makes a crew that polls `set`. Never destroyed.
  static absl::StatusOr<Crew*> Create(progress::PollSet* set,
                                      progress::PollingMode mode);

  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Runs `task` soon, in any order and on any thread of the crew.
  void Run(Task task);
  // The descriptors for which the leader sleeps.
  Watches* watches() { return watches_.get(); }
  // Returns true on a thread of the crew.
  bool IsCurrent() const;
  progress::PollSet* poll_set() { return set_; }

 private:
  class Worker;

  Crew(progress::PollSet* set, progress::PollingMode mode,
       std::unique_ptr<Watches> watches);

  static void* WorkerMain(void* worker);
  static void* GuardMain(void* crew);

  void Work(Worker* me);
  void Lead(Worker* me);
  // Polls until the paths have no input. Runs other tasks between the polls.
  void PollLeftInput();
  bool RunTasks(Worker* me);
  bool RunOne(Worker* me);
  bool Sleep();
  // Waits until this worker becomes the leader, or tasks need help. Returns
  // false if the thread must end.
  bool Park(Worker* me);
  // Makes another worker the leader.
  void Replace();
  void CallHelp();
  absl::StatusOr<Worker*> ParkedOrNewLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void Guard();
  // Returns true if the leader has been running the same task since the last
  // call.
  bool LeaderIsStuck();
  void GuardRests();
  void WakeGuard();

  progress::PollSet* const set_;
  const progress::PollingMode mode_;
  const std::unique_ptr<Watches> watches_;
  const size_t max_helpers_;
  std::atomic<Worker*> leader_{nullptr};
  std::atomic<size_t> waiting_{0};   // tasks_.size()
  std::atomic<bool> asleep_{false};  // a thread is in Sleep(), and no other
  std::atomic<bool> sleeps_{false};  // Run() has to wake that thread
  std::atomic<int> guard_rests_{0};  // a futex
  std::atomic<size_t> helpers_{0};

  // Used by the guard only.
  Worker* seen_leader_ = nullptr;
  uint64_t seen_beat_ = 0;

  base::Mutex mu_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mu_);
  std::vector<Worker*> parked_ ABSL_GUARDED_BY(mu_);
  size_t threads_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_THREADS_CREW_H_
