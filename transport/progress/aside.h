// Background threads for work whose time somebody else decides: one for what a
// stranger may make slow, one for what a device may.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_ASIDE_H_
#define PENSTOCK_TRANSPORT_PROGRESS_ASIDE_H_

#include <cstddef>
#include <functional>

namespace penstock {
namespace progress {

// Runs `task` on the thread, after the tasks of earlier calls. Holds no lock
// meanwhile. Starts the thread on first use. If that fails, keeps the task, and
// the next call tries again. In the child of a fork, tasks from before the fork
// do not run, and new ones run on another thread. Thread-safe; never blocks.
void RunAside(std::function<void()> task);

// As RunAside(), on another thread, for calls of a device's driver, which may
// wait for the device's work. They hold up no stranger's tasks, and do not
// count as such.
void RunAsideForDevice(std::function<void()> task);

// Whether so many of those wait that the device is stuck. Code in which
// strangers can cause such tasks takes no new ones on until this is false.
bool IsBusyAsideForDevice();

// Returns how many tasks of RunAside() wait or are running. Thread-safe.
size_t TasksAside();

// Whether there are so many tasks that one is stuck, or somebody floods this
// process. Code in which strangers can cause tasks accepts nothing from them
// until this is false.
constexpr size_t kManyTasksAside = 256;
inline bool IsBusyAside() { return TasksAside() > kManyTasksAside; }

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_ASIDE_H_
