#include "transport/progress/aside.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <utility>

#include "transport/base/mutex.h"
#include "transport/progress/detached_thread.h"

namespace penstock {
namespace progress {
namespace {

// Never destroyed, because its thread runs until the process ends.
struct Queue {
  base::Mutex mu;
  std::condition_variable_any added;
  std::deque<std::function<void()>> tasks ABSL_GUARDED_BY(mu);
  size_t unfinished ABSL_GUARDED_BY(mu) = 0;
  bool has_thread ABSL_GUARDED_BY(mu) = false;
};

std::atomic<Queue*> of_strangers{nullptr};
std::atomic<Queue*> of_devices{nullptr};

// A lock may be held for ever in the child: its holder may be a thread of the
// parent.
void ForgetQueuesInChild() {
  of_strangers.store(nullptr);
  of_devices.store(nullptr);
}

Queue* Get(std::atomic<Queue*>* which) {
  Queue* queue = which->load(std::memory_order_acquire);
  if (queue != nullptr) return queue;
  static const int registered =
      pthread_atfork(nullptr, nullptr, &ForgetQueuesInChild);
  (void)registered;
  auto* const made = new Queue;
  if (which->compare_exchange_strong(queue, made)) return made;
  delete made;
  return queue;
}

void* RunTasks(void* argument) {
  auto* const queue = static_cast<Queue*>(argument);
  for (;;) {
    queue->mu.Lock();
    while (queue->tasks.empty()) queue->added.wait(queue->mu);
    std::function<void()> task = std::move(queue->tasks.front());
    queue->tasks.pop_front();
    queue->mu.Unlock();
    task();
    task = nullptr;
    base::MutexLock lock(&queue->mu);
    --queue->unfinished;
  }
  return nullptr;
}

void Add(Queue* queue, const char* thread_name, std::function<void()> task) {
  base::MutexLock lock(&queue->mu);
  queue->tasks.push_back(std::move(task));
  ++queue->unfinished;
  if (!queue->has_thread) {
    queue->has_thread = StartDetachedThread(thread_name, &RunTasks, queue).ok();
  }
  queue->added.notify_one();
}

size_t Unfinished(Queue* queue) {
  base::MutexLock lock(&queue->mu);
  return queue->unfinished;
}

}  // namespace

void RunAside(std::function<void()> task) {
  Add(Get(&of_strangers), "penstock-aside", std::move(task));
}

void RunAsideForDevice(std::function<void()> task) {
  Add(Get(&of_devices), "penstock-device", std::move(task));
}

size_t TasksAside() { return Unfinished(Get(&of_strangers)); }

bool IsBusyAsideForDevice() {
  return Unfinished(Get(&of_devices)) > kManyTasksAside;
}

}  // namespace progress
}  // namespace penstock
