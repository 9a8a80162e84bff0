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

struct Crew {
  const char* thread_name;
  size_t most_threads;
};

// The names and numbers of threads, indexed by Aside.
constexpr Crew kCrews[] = {{"penstock-aside", 1},
                           {"penstock-close", kMostClosingThreads},
                           {"penstock-names", kMostNameThreads},
                           {"penstock-status", 1},
                           {"penstock-device", 1}};
constexpr size_t kKinds = sizeof kCrews / sizeof kCrews[0];
static_assert(kKinds == static_cast<size_t>(Aside::kDevice) + 1,
              "each kind has a crew");

// A queue of tasks. Never destroyed, because its threads run until the process
// ends.
struct Queue {
  base::Mutex mu;
  std::condition_variable_any added;
  std::deque<std::function<void()>> tasks ABSL_GUARDED_BY(mu);
  size_t unfinished ABSL_GUARDED_BY(mu) = 0;
  size_t threads ABSL_GUARDED_BY(mu) = 0;
  size_t waiting_threads ABSL_GUARDED_BY(mu) = 0;
};

std::atomic<Queue*> queues[kKinds];

// Makes the child of a fork create other queues. A thread of the parent may
// have held a lock of the parent's queues.
void ForgetQueuesInChild() {
  for (std::atomic<Queue*>& queue : queues) queue.store(nullptr);
}

// Registers before main(), for the reason in base::PerProcess.
const int registered = pthread_atfork(nullptr, nullptr, &ForgetQueuesInChild);

Queue* Get(Aside kind) {
  std::atomic<Queue*>& shared = queues[static_cast<size_t>(kind)];
  Queue* queue = shared.load(std::memory_order_acquire);
  if (queue != nullptr) return queue;
  auto* const made = new Queue;
  if (shared.compare_exchange_strong(queue, made)) return made;
  delete made;
  return queue;
}

void* RunTasks(void* argument) {
  auto* const queue = static_cast<Queue*>(argument);
  for (;;) {
    queue->mu.Lock();
    ++queue->waiting_threads;
    while (queue->tasks.empty()) queue->added.wait(queue->mu);
    --queue->waiting_threads;
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

}  // namespace

void RunAside(Aside kind, std::function<void()> task) {
  const Crew& crew = kCrews[static_cast<size_t>(kind)];
  Queue* const queue = Get(kind);
  base::MutexLock lock(&queue->mu);
  queue->tasks.push_back(std::move(task));
  ++queue->unfinished;
  if (queue->tasks.size() > queue->waiting_threads &&
      queue->threads < crew.most_threads &&
      StartDetachedThread(crew.thread_name, &RunTasks, queue).ok()) {
    ++queue->threads;
  }
  queue->added.notify_one();
}

size_t TasksAside(Aside kind) {
  Queue* const queue = Get(kind);
  base::MutexLock lock(&queue->mu);
  return queue->unfinished;
}

// Counts kMemory first. A task of kMemory may add a task of kClosing before it
// ends, and this order counts at least one of the two.
size_t TasksAside() {
  const size_t memory = TasksAside(Aside::kMemory);
  return memory + TasksAside(Aside::kClosing);
}

}  // namespace progress
}  // namespace penstock
