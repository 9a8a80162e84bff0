// Threads that run tasks immediately.

#ifndef PENSTOCK_FRAMEWORKS_TORCH_WORKERS_H_
#define PENSTOCK_FRAMEWORKS_TORCH_WORKERS_H_

#include <functional>
#include <memory>

namespace penstock {
namespace pytorch {

// Starts a thread for a task if all threads are busy. Threads stay for later
// tasks. A waiting task therefore never delays another task.
//
// Thread-safe.
class Workers {
 public:
  Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  // Waits for all tasks. If a task destroys its Workers, the destructor does
  // not wait for that task.
  ~Workers();

  // Runs the task on another thread. Runs it on this thread if the system
  // starts no thread, so the caller must not hold a lock that the task needs.
  void Run(const std::function<void()>& task);
  // As Run(), but returns false if the system starts no thread.
  bool TryRun(const std::function<void()>& task);

 private:
  // The state that the threads share, because the last task may outlive the
  // Workers.
  struct State;

  const std::shared_ptr<State> state_;
};

}  // namespace pytorch
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TORCH_WORKERS_H_
