// One background thread for what may take as long as a stranger likes.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_ASIDE_H_
#define PENSTOCK_TRANSPORT_PROGRESS_ASIDE_H_

#include <cstddef>
#include <functional>

namespace penstock {
namespace progress {

// Calls `task` on the thread, after those of earlier calls, holding no lock.
// The thread is made on first use; where there is none to be had, the next call
// tries again. In the child of a fork there is another one, and nothing of what
// waited. Thread-safe; never blocks.
void RunAside(std::function<void()> task);

// Tasks that wait or are under way.
size_t TasksAside();

// Whether there are so many that something is stuck, or somebody floods.
// Whoever can be made by strangers to cause tasks takes in no more of them
// until there are fewer.
constexpr size_t kManyTasksAside = 256;
inline bool IsBusyAside() { return TasksAside() > kManyTasksAside; }

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_ASIDE_H_
