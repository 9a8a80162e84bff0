#include "python/pending.h"

#include "absl/time/time.h"
#include "python/bindings.h"
#include "transport/base/per_process.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// The interval at which a wait checks for Ctrl-C.
constexpr absl::Duration kLook = absl::Milliseconds(100);

}  // namespace

void Await(const base::SteadyNotification& came) {
  {
    Unlocked unlocked;
    while (!came.WaitFor(kLook) && !IsInterrupted()) {
    }
  }
  RunPending();
  ThrowIfRaised();
}

void Ended::Add(uint64_t number) {
  absl::MutexLock lock(&mu_);
  numbers_.push_back(number);
}

std::vector<uint64_t> Ended::Take() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(
      +[](std::vector<uint64_t>* numbers) { return !numbers->empty(); },
      &numbers_));
  return std::exchange(numbers_, {});
}

Ended& Ended::All() { return *base::PerProcess<Ended>::Get(); }

void Pending::End(Result result) {
  result_ = std::move(result);
  const uint64_t number = number_;
  ended_.Notify();
  if (number != 0) Ended::All().Add(number);
}

py::object Pending::Wait() {
  Await(ended_);
  const Result result = std::exchange(result_, nullptr);
  return result();
}

void BindPending(py::module_& module) {
  py::class_<Pending, std::shared_ptr<Pending>>(module, "_PsPending")
      .def("wait", &Pending::Wait);
  module.def("_ps_ended", [] {
    const std::vector<uint64_t> numbers = [] {
      Unlocked unlocked;
      return Ended::All().Take();
    }();
    py::list list;
    for (const uint64_t number : numbers) list.append(number);
    return list;
  });
}

}  // namespace penstock::python
