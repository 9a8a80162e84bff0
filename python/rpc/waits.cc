#include "python/rpc/waits.h"

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cmath>

#include "python/gil.h"
#include "transport/base/steady_time.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// The interval at which a wait of the main thread checks for signals.
constexpr absl::Duration kLook = absl::Milliseconds(100);

unsigned long main_thread = 0;  // NOLINT: Python's type

bool IsMainThread() { return PyThread_get_thread_ident() == main_thread; }

}  // namespace

absl::Duration TimeoutOf(double seconds) {
  if (seconds < 0 || std::isnan(seconds)) return absl::InfiniteDuration();
  return absl::Seconds(seconds);
}

Waited WaitFor(const std::function<bool(absl::Time)>& wait_until,
               absl::Time deadline) {
  const bool looks = IsMainThread();
  for (;;) {
    const absl::Time look =
        looks ? base::SteadyNow() + kLook : absl::InfiniteFuture();
    if (wait_until(std::min(deadline, look))) return Waited::kSet;
    if (base::SteadyNow() >= deadline) return Waited::kDeadline;
    if (IsInterrupted()) return Waited::kInterrupted;
  }
}

Waited WaitFor(Event* event, absl::Time deadline) {
  return WaitFor([event](absl::Time until) { return event->WaitUntil(until); },
                 deadline);
}

void NoteMainThread() {
  main_thread = py::module_::import("threading")
                    .attr("main_thread")()
                    .attr("ident")
                    .cast<unsigned long>();  // NOLINT: Python's type
}

}  // namespace penstock::python
