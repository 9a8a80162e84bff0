// Background threads for work whose time somebody else decides.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_ASIDE_H_
#define PENSTOCK_TRANSPORT_PROGRESS_ASIDE_H_

#include <cstddef>
#include <functional>

namespace penstock {
namespace progress {

// What a task may wait for. Each kind has a queue and threads of its own, so
// that no kind holds another up.
enum class Aside {
  // The kernel, which searches, unmaps or frees pages. One thread.
  kMemory,
  // The owner of a descriptor that is closed, who may never let go of it. At
  // most kMostClosingThreads.
  kClosing,
  // A name server. At most kMostNameThreads.
  kNames,
  // Locks of this process's connections, and functions of the program, which
  // tell the state of both. One thread.
  kStatus,
  // A device's driver, which waits for the device's work. One thread.
  kDevice,
};

// One that is stuck leaves the others. Few, because a stranger that makes many
// closings slow can have them all.
constexpr size_t kMostClosingThreads = 4;
// Caps how many names are resolved at a time.
constexpr size_t kMostNameThreads = 4;

// Runs `task` on a thread of that kind. Begins tasks of one kind in the order
// of the calls; those of a kind with one thread end in that order too. Holds no
// lock meanwhile. Starts a thread when none of the kind is free. If that fails,
// keeps the task, and the next call tries again. In the child of a fork, tasks
// from before the fork do not run, and new ones run on other threads.
// Thread-safe; never blocks.
void RunAside(Aside kind, std::function<void()> task);

// Returns how many tasks of that kind wait or are running. Thread-safe.
size_t TasksAside(Aside kind);

// Returns the same for the tasks that peers can cause: those of kMemory and
// kClosing.
size_t TasksAside();

// Returns whether there are so many tasks that one is stuck, or somebody floods
// this process. Code in which peers can cause tasks accepts nothing from them
// until this is false.
constexpr size_t kManyTasksAside = 256;
inline bool IsBusyAside() { return TasksAside() > kManyTasksAside; }

// Returns whether so many tasks of kDevice wait that the device is stuck. Code
// in which peers can cause such tasks takes no new ones on until this is false.
inline bool IsBusyAsideForDevice() {
  return TasksAside(Aside::kDevice) > kManyTasksAside;
}

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_ASIDE_H_
