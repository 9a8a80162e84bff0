// Calls in progress, and the Python threads that wait for them.

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
#include "python/gil.h"
#include "transport/base/steady_notification.h"

namespace penstock::python {

// Waits Unlocked until `came` is notified. On Ctrl-C, throws KeyboardInterrupt;
// the work that notifies `came` continues. Call with the GIL.
void Await(const base::SteadyNotification& came);

// Runs `function`, which may block, on a new thread. Returns the function's
// result. After Ctrl-C, that thread destroys the result. `function` must
// neither need the GIL nor refer to objects of the caller. Call it with the
// GIL.
template <typename Function>
auto RunInterruptibly(Function function) {
  struct Run {
    std::optional<decltype(function())> result;
    base::SteadyNotification came;
  };
  const auto run = std::make_shared<Run>();
  std::thread([run, function = std::move(function)]() mutable {
    run->result.emplace(function());
    run->came.Notify();
  }).detach();
  Await(run->came);
  return *std::move(run->result);
}

// The numbers of ended calls. One Python thread removes the numbers, and
// forwards the results. Thread-safe.
class Ended {
 public:
  void Add(uint64_t number) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until at least one call has ended. Removes and returns all numbers.
  // Call it Unlocked.
  std::vector<uint64_t> Take() ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the object of this process, which is never destroyed. A forked
  // child has its own.
  static Ended& All();

 private:
  absl::Mutex mu_;
  std::vector<uint64_t> numbers_ ABSL_GUARDED_BY(mu_);
};

// A call in progress, as a Python object.
class Pending {
 public:
  // Makes the call's result, or throws. Runs with the GIL.
  using Result = std::function<pybind11::object()>;

  // Makes a call in progress. If `number` is not 0, End() adds it to
  // Ended::All().
  explicit Pending(uint64_t number) : number_(number) {}

  // Ends the call. Call it once, on any thread. Does not wait for the GIL.
  void End(Result result);
  // Waits for the end like Await(), and returns the result. Call it once.
  pybind11::object Wait();

 private:
  const uint64_t number_;
  Result result_;
  base::SteadyNotification ended_;
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_PENDING_H_
