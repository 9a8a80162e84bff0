// Threads that run tasks at once.

#ifndef PENSTOCK_FRAMEWORKS_TORCH_WORKERS_H_
#define PENSTOCK_FRAMEWORKS_TORCH_WORKERS_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace pytorch {

// Starts a thread for a task if all threads are busy, and keeps the thread for
// later tasks. A task that waits therefore never delays another one.
//
// Thread-safe.
class Workers {
 public:
  Workers() = default;
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  // Waits for all tasks. A task must not destroy its Workers.
  ~Workers();

  void Run(std::function<void()> task);

 private:
  void Work();

  base::Mutex mu_;
  std::condition_variable_any changed_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  size_t idle_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mu_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mu_);
};

}  // namespace pytorch
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TORCH_WORKERS_H_
