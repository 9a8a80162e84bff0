#include "frameworks/torch/workers.h"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace pytorch {

struct Workers::State : std::enable_shared_from_this<State> {
  base::Mutex mu;
  std::condition_variable_any changed;
  bool stopping ABSL_GUARDED_BY(mu) = false;
  size_t idle ABSL_GUARDED_BY(mu) = 0;
  std::deque<std::function<void()>> tasks ABSL_GUARDED_BY(mu);
  std::vector<std::thread> threads ABSL_GUARDED_BY(mu);

  // Returns false if the system starts no thread.
  bool StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void Work();
};

bool Workers::State::StartThread() {
  try {
    threads.emplace_back([self = shared_from_this()] { self->Work(); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void Workers::State::Work() {
  base::MutexLock lock(&mu);
  for (;;) {
    while (tasks.empty()) {
      if (stopping) return;
      ++idle;
      changed.wait(mu);
      --idle;
    }
    std::function<void()> task = std::move(tasks.front());
    tasks.pop_front();
    mu.Unlock();
    task();
    // Destroys the task without the lock, because the task's objects may run
    // Python code that calls Run().
    task = nullptr;
    mu.Lock();
  }
}

Workers::Workers() : state_(std::make_shared<State>()) {}

Workers::~Workers() {
  std::vector<std::thread> threads;
  {
    base::MutexLock lock(&state_->mu);
    state_->stopping = true;
    threads.swap(state_->threads);
  }
  state_->changed.notify_all();
  for (std::thread& thread : threads) {
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

bool Workers::TryRun(const std::function<void()>& task) {
  base::MutexLock lock(&state_->mu);
  if (state_->tasks.size() >= state_->idle && !state_->StartThread()) {
    return false;
  }
  state_->tasks.push_back(task);
  state_->changed.notify_one();
  return true;
}

void Workers::Run(const std::function<void()>& task) {
  if (!TryRun(task)) task();
}

}  // namespace pytorch
}  // namespace penstock
