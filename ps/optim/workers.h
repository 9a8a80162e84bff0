// Threads that share the passes over large values.

#ifndef PENSTOCK_PS_OPTIM_WORKERS_H_
#define PENSTOCK_PS_OPTIM_WORKERS_H_

#include <cstddef>
#include <memory>

#include "absl/functional/function_ref.h"

namespace penstock::ps::optim {

// An arena of Intel's TBB: it takes threads that have nothing else to do from
// the process's one pool, so that several servers in a process do not have more
// threads than there are processors. Any thread may use it; several may at
// once, and then share it.
class Workers {
 public:
  // `threads` includes the caller's; 0: as many as this process has processors.
  explicit Workers(int threads = 0);
  ~Workers();

  int threads() const;

  // Calls task(0) to task(tasks - 1), each once, by any of the threads in any
  // order, and returns when all have returned. A single task is run by the
  // caller. `task` must not throw.
  void ForEach(size_t tasks, absl::FunctionRef<void(size_t)> task) const;

 private:
  struct Arena;
  const std::unique_ptr<Arena> arena_;
};

}  // namespace penstock::ps::optim

#endif  // PENSTOCK_PS_OPTIM_WORKERS_H_
