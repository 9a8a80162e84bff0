// A thread that does one piece of work at a time.

#ifndef PENSTOCK_TESTS_PS_SIMULATION_LANE_H_
#define PENSTOCK_TESTS_PS_SIMULATION_LANE_H_

#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace penstock::ps {

// The thread of a simulated process. Start() must not be called while this
// thread works.
class Lane {
 public:
  Lane() : thread_([this] { Loop(); }) {}
  // Waits for the end of the work, and ends the thread.
  ~Lane() {
    {
      absl::MutexLock lock(&mu_);
      stop_ = true;
    }
    thread_.join();
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void Start(std::function<void()> work) {
    absl::MutexLock lock(&mu_);
    work_ = std::move(work);
    is_busy_ = true;
  }
  bool is_busy() const {
    absl::MutexLock lock(&mu_);
    return is_busy_;
  }

 private:
  bool HasNewsLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stop_ || is_busy_;
  }

  void Loop() {
    while (true) {
      std::function<void()> work;
      {
        absl::MutexLock lock(&mu_);
        mu_.Await(absl::Condition(this, &Lane::HasNewsLocked));
        if (!is_busy_) return;
        work = std::move(work_);
      }
      work();
      absl::MutexLock lock(&mu_);
      is_busy_ = false;
    }
  }

  mutable absl::Mutex mu_;
  std::function<void()> work_ ABSL_GUARDED_BY(mu_);
  bool is_busy_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SIMULATION_LANE_H_
