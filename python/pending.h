// Calls under way, and who waits for them.

#ifndef PENSTOCK_PYTHON_PENDING_H_
#define PENSTOCK_PYTHON_PENDING_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "python/gil.h"

namespace penstock::python {

// Waits Unlocked. On Ctrl-C throws KeyboardInterrupt, and leaves what it has
// waited for to go on. Call it with the GIL.
void Await(const absl::Notification& came);

// Runs `function`, which waits on its own, in a thread of its own, and returns
// what it returns. After Ctrl-C nobody wants that any more: it is destroyed by
// that thread. `function` must not need the GIL, nor refer to what the caller
// has. Call it with the GIL.
template <typename Function>
auto RunInterruptibly(Function function) {
  struct Run {
    std::optional<decltype(function())> result;
    absl::Notification came;
  };
  const auto run = std::make_shared<Run>();
  std::thread([run, function = std::move(function)]() mutable {
    run->result.emplace(function());
    run->came.Notify();
  }).detach();
  Await(run->came);
  return *std::move(run->result);
}

// The numbers of calls that have ended, for the one thread of Python's that
// hands out their results. Thread-safe.
class Ended {
 public:
  void Add(uint64_t number) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for some, and takes them. Call it Unlocked.
  std::vector<uint64_t> Take() ABSL_LOCKS_EXCLUDED(mu_);

  // That of this process, which lives as long. A forked child has another.
  static Ended& All();

 private:
  absl::Mutex mu_;
  std::vector<uint64_t> numbers_ ABSL_GUARDED_BY(mu_);
};

// The Python object of a call.
class Pending {
 public:
  // Makes the result, or throws. Runs with the GIL.
  using Result = std::function<pybind11::object()>;

  // If `number` is not 0, End() adds it to Ended::All().
  explicit Pending(uint64_t number) : number_(number) {}

  // Call it once, on any thread. Does not wait for the GIL.
  void End(Result result);
  // Waits for the end as Await() does. Call it once.
  pybind11::object Wait();

 private:
  const uint64_t number_;
  Result result_;
  absl::Notification ended_;
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_PENDING_H_
