#include "ps/optim/workers.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace penstock::ps::optim {
namespace {

// Tells ThreadSanitizer the order that TBB guarantees: the caller's earlier
// work happens before each task, and each task before the return. Needed
// because Debian's TBB is built without ThreadSanitizer. Concurrent tasks are
// still checked against each other.
class Ordered {
 public:
#if defined(__SANITIZE_THREAD__)
  void Begin() { __tsan_release(&begin_); }
  void TaskBegins() { __tsan_acquire(&begin_); }
  void TaskEnds() { __tsan_release(&end_); }
  void End() { __tsan_acquire(&end_); }

 private:
  char begin_ = 0, end_ = 0;
#else
  void Begin() {}
  void TaskBegins() {}
  void TaskEnds() {}
  void End() {}
#endif
};

}  // namespace

struct Workers::Arena {
  explicit Arena(int threads)
      : tbb_arena(threads > 0 ? threads : tbb::task_arena::automatic) {}

  tbb::task_arena tbb_arena;
};

Workers::Workers(int threads) : arena_(new Arena(threads)) {}

Workers::~Workers() = default;

int Workers::threads() const { return arena_->tbb_arena.max_concurrency(); }

void Workers::ForEach(size_t tasks,
                      absl::FunctionRef<void(size_t)> task) const {
  if (tasks <= 1) {
    if (tasks == 1) task(0);
    return;
  }
  Ordered ordered;
  ordered.Begin();
  arena_->tbb_arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<size_t>(0, tasks),
        [&](const tbb::blocked_range<size_t>& range) {
          ordered.TaskBegins();
          for (size_t i = range.begin(); i < range.end(); ++i) task(i);
          ordered.TaskEnds();
        },
        tbb::simple_partitioner());
  });
  ordered.End();
}

}  // namespace penstock::ps::optim
