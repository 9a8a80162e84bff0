// The lock of Python's interpreter (GIL): how to wait without the GIL, and how
// to defer work that needs the GIL.

#ifndef PENSTOCK_PYTHON_GIL_H_
#define PENSTOCK_PYTHON_GIL_H_

#include <pybind11/pybind11.h>

#include <functional>

namespace penstock::python {

// A scope that releases the GIL, so that other Python threads run. Needed
// around every wait, and around every call that may hold a lock of gRPC for
// long. Construct it on a thread that has the GIL.
//
// Once the interpreter begins to exit, only the exiting thread returns from the
// destructor. All other threads stop there, because they would enter a dying
// interpreter.
class Unlocked {
 public:
  Unlocked();
  // Acquires the GIL again. May throw: Python 3.11 unwinds a thread that
  // requests the GIL too late.
  ~Unlocked() noexcept(false);
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* const state_;
};

// Runs `function` soon, with the GIL, but not within this call. Any thread may
// call RunLater(), with or without the GIL and under any lock, because
// RunLater() never waits for the GIL. gRPC's threads use it to release Python
// objects. Once the interpreter is about to exit, leaks `function` instead of
// running or destroying it.
void RunLater(std::function<void()> function);

// Runs the functions that RunLater() has queued. Call with the GIL, without
// other locks. The main thread also runs these functions between two Python
// instructions.
void RunPending();

// Makes RunLater() and RunPending() work in forked children. Call it once, from
// the module.
void SurviveForks();

// Checks for signals, such as Ctrl-C, from a thread that waits Unlocked.
// Returns true if a signal handler has raised an exception, which
// ThrowIfRaised() throws.
bool IsInterrupted();

// Throws the exception that IsInterrupted() found. Call it with the GIL.
void ThrowIfRaised();

// Makes `function` run at the interpreter's exit, with the GIL, while the
// interpreter still works. Other threads stop before `function` runs, at the
// end of their Unlocked scope. RunLater() does nothing afterwards. Call
// PrepareForExit() once, from the module.
void PrepareForExit(const std::function<void()>& function);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_GIL_H_
