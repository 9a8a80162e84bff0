#include "transport/progress/aside.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "transport/progress/detached_thread.h"

namespace penstock {
namespace progress {
namespace {

// Lives as long as the process, as its thread does.
struct Queue {
  std::mutex mu;  // guards the rest
  std::condition_variable added;
  std::deque<std::function<void()>> tasks;
  size_t unfinished = 0;
  bool has_thread = false;
};

std::atomic<Queue*> current{nullptr};

// The parent's lock may be held by a thread that is not in the child.
void ForgetQueueInChild() { current.store(nullptr); }

Queue* TheQueue() {
  Queue* queue = current.load(std::memory_order_acquire);
  if (queue != nullptr) return queue;
  static const int registered =
      pthread_atfork(nullptr, nullptr, &ForgetQueueInChild);
  (void)registered;
  auto* const made = new Queue;
  if (current.compare_exchange_strong(queue, made)) return made;
  delete made;
  return queue;
}

void* RunTasks(void* argument) {
  auto* const queue = static_cast<Queue*>(argument);
  std::unique_lock<std::mutex> lock(queue->mu);
  for (;;) {
    queue->added.wait(lock, [queue] { return !queue->tasks.empty(); });
    std::function<void()> task = std::move(queue->tasks.front());
    queue->tasks.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    --queue->unfinished;
  }
  return nullptr;
}

}  // namespace

void RunAside(std::function<void()> task) {
  Queue* const queue = TheQueue();
  std::lock_guard<std::mutex> lock(queue->mu);
  queue->tasks.push_back(std::move(task));
  ++queue->unfinished;
  if (!queue->has_thread) {
    queue->has_thread =
        StartDetachedThread("penstock-aside", &RunTasks, queue).ok();
  }
  queue->added.notify_one();
}

size_t TasksAside() {
  Queue* const queue = TheQueue();
  std::lock_guard<std::mutex> lock(queue->mu);
  return queue->unfinished;
}

}  // namespace progress
}  // namespace penstock
