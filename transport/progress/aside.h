// Background threads for operations of unknown duration, such as closing a
// peer's descriptor.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_ASIDE_H_
#define PENSTOCK_TRANSPORT_PROGRESS_ASIDE_H_

#include <cstddef>
#include <functional>

namespace penstock {
namespace progress {

// The resource for which a task may wait. Each kind has its own queue and
// threads, so that tasks of one kind do not delay another kind.
enum class Aside {
  // Searches, unmaps or frees pages in the kernel. One thread.
  kMemory,
  // Closes descriptors. A peer may block the closing of a descriptor forever.
  // At most kMostClosingThreads threads.
  kClosing,
  // Looks up names, for which a name server may be slow. At most
  // kMostNameThreads threads.
  kNames,
  // Collects the state of connections and of the program. May block on locks of
  // connections or in functions of the program. One thread.
  kStatus,
  // Calls a device's driver, which waits for the device's work. One thread.
  kDevice,
};

// Caps the closing threads. Several threads, so that one slow closing does not
// block the others. Few threads, because a hostile peer can occupy all of them
// with slow closings.
constexpr size_t kMostClosingThreads = 4;
// Limits the threads that resolve names.
constexpr size_t kMostNameThreads = 4;

// Runs `task` on a thread of `kind`. Begins tasks of one kind in the order of
// the calls. If the kind has one thread, tasks also end in that order. Holds no
// lock while a task runs.
//
// Starts a thread if no thread of the kind is free. If no thread can be
// started, the task waits until a later call of RunAside() starts one. In the
// child of a fork, tasks from before the fork do not run, and new tasks run on
// new threads. Thread-safe; never blocks.
void RunAside(Aside kind, std::function<void()> task);

// Returns the number of waiting and running tasks of `kind`. Thread-safe.
size_t TasksAside(Aside kind);

// Returns the number of waiting and running tasks that peers can cause: those
// of kMemory and kClosing.
size_t TasksAside();

// Caps the waiting and running tasks that peers can cause. More tasks mean that
// a task is stuck, or that a peer floods this process.
constexpr size_t kManyTasksAside = 256;

// Returns true above the cap. Code that runs tasks for peers then stops
// accepting input from peers.
inline bool IsBusyAside() { return TasksAside() > kManyTasksAside; }

// Returns true if kDevice has more tasks than the cap, because the device is
// stuck. Code that runs kDevice tasks for peers then refuses new ones.
inline bool IsBusyAsideForDevice() {
  return TasksAside(Aside::kDevice) > kManyTasksAside;
}

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_ASIDE_H_
