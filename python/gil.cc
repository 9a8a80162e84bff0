#include "python/gil.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "transport/base/mutex.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// Functions that wait for the GIL. Never destroyed, because gRPC's threads may
// add functions at any time. The lock is not an absl mutex: those break in a
// forked child if another thread was waiting for them.
struct Pending {
  base::Mutex mu;
  std::vector<std::function<void()>> functions ABSL_GUARDED_BY(mu);
  bool is_scheduled ABSL_GUARDED_BY(mu) = false;
  bool has_ended ABSL_GUARDED_BY(mu) = false;
};

Pending& ThePending() {
  static auto* const pending = new Pending;
  return *pending;
}

// Holds the lock during a fork. Otherwise a thread of gRPC might hold the lock,
// and that thread does not exist in the child. The fork waits only briefly,
// because holders of the lock never wait for the GIL.
void BeforeFork() ABSL_NO_THREAD_SAFETY_ANALYSIS { ThePending().mu.Lock(); }

void InParent() ABSL_NO_THREAD_SAFETY_ANALYSIS { ThePending().mu.Unlock(); }

// Unlocks in the forked child.
void InChild() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  ThePending().is_scheduled = false;  // the child has no such scheduled call
  ThePending().mu.Unlock();
}

std::atomic<bool> is_exiting{false};
std::thread::id exiting_thread;  // set before is_exiting

bool IsExiting() { return is_exiting.load(std::memory_order_acquire); }

int RunFromInterpreter(void*) {
  RunPending();
  return 0;
}

}  // namespace

Unlocked::Unlocked() : state_(PyEval_SaveThread()) {}

Unlocked::~Unlocked() noexcept(false) {
  while (IsExiting() && std::this_thread::get_id() != exiting_thread) pause();
  PyEval_RestoreThread(state_);
}

void RunLater(std::function<void()> function) {
  Pending& pending = ThePending();
  base::MutexLock lock(&pending.mu);
  if (pending.has_ended) {
    // Leaks the function, because destroying it might use objects of an
    // interpreter that no longer exists.
    new std::function<void()>(std::move(function));
    return;
  }
  pending.functions.push_back(std::move(function));
  // Schedules the call under the lock, and so before the interpreter's end.
  // Py_AddPendingCall() only needs a lock of its own for a short time. If its
  // queue is full, it fails, and the next caller tries again.
  if (!pending.is_scheduled) {
    pending.is_scheduled = Py_AddPendingCall(RunFromInterpreter, nullptr) == 0;
  }
}

void RunPending() {
  Pending& pending = ThePending();
  std::vector<std::function<void()>> functions;
  {
    base::MutexLock lock(&pending.mu);
    pending.is_scheduled = false;
    functions.swap(pending.functions);
  }
  for (const std::function<void()>& function : functions) function();
}

bool IsInterrupted() {
  if (IsExiting()) return false;
  const PyGILState_STATE state = PyGILState_Ensure();
  RunPending();
  const bool is_raised = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return is_raised;
}

void ThrowIfRaised() {
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
}

void SurviveForks() { pthread_atfork(&BeforeFork, &InParent, &InChild); }

void PrepareForExit(const std::function<void()>& function) {
  py::module_::import("atexit").attr("register")(py::cpp_function([function] {
    exiting_thread = std::this_thread::get_id();
    is_exiting.store(true, std::memory_order_release);
    function();
    RunPending();
    Pending& pending = ThePending();
    base::MutexLock lock(&pending.mu);
    pending.has_ended = true;
  }));
}

}  // namespace penstock::python
