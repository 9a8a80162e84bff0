// Threads for passes over large values.

#ifndef PENSTOCK_PS_OPTIM_WORKERS_H_
#define PENSTOCK_PS_OPTIM_WORKERS_H_

#include <cstddef>
#include <memory>

#include "absl/functional/function_ref.h"

namespace penstock::ps::optim {

// A thread pool for passes over large values: an arena of Intel's TBB, which
// shares the process's one pool of threads. Several servers in a process
// therefore use no more threads than there are processors. Thread-safe;
// concurrent callers share the arena.
class Workers {
 public:
  // Makes an arena of `threads` threads, including the caller's thread. 0 means
  // one thread per processor of this process.
  explicit Workers(int threads = 0);
  ~Workers();

  int threads() const;

  // Calls task(0) to task(tasks - 1), each once, on any of the threads in any
  // order. Returns after all have returned. Runs a single task on the caller's
  // thread. `task` must not throw.
  void ForEach(size_t tasks, absl::FunctionRef<void(size_t)> task) const;

 private:
  struct Arena;
  const std::unique_ptr<Arena> arena_;
};

}  // namespace penstock::ps::optim

#endif  // PENSTOCK_PS_OPTIM_WORKERS_H_
