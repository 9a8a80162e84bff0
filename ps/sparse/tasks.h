// Splits the work of one call into tasks that may run concurrently.

#ifndef PENSTOCK_PS_SPARSE_TASKS_H_
#define PENSTOCK_PS_SPARSE_TASKS_H_

#include <algorithm>
#include <cstddef>

#include "absl/functional/function_ref.h"
#include "ps/sparse/batch.h"

namespace penstock::ps::sparse {

// A function that runs tasks: task(0) to task(tasks - 1), each once, on any
// threads in any order. Returns after all have returned.
using RunTasks =
    absl::FunctionRef<void(size_t tasks, absl::FunctionRef<void(size_t)> task)>;

// Runs the tasks one after another on the caller's thread.
inline void InTurn(size_t tasks, absl::FunctionRef<void(size_t)> task) {
  for (size_t i = 0; i < tasks; ++i) task(i);
}

// The minimum number of ids per task.
inline constexpr size_t kIdsPerTask = 256;

// A range of consecutive shards of a batch. Each shard belongs to exactly one
// task, so the ids of a shard keep their order on any thread.
struct ShardRange {
  size_t begin;
  size_t end;
};

inline size_t TasksOf(const Batch& batch) {
  const size_t wanted = batch.End(batch.shards() - 1) / kIdsPerTask;
  return std::min(std::max<size_t>(wanted, 1), batch.shards());
}

inline ShardRange ShardsOf(const Batch& batch, size_t task, size_t tasks) {
  return {batch.shards() * task / tasks, batch.shards() * (task + 1) / tasks};
}

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_TASKS_H_
