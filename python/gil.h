// The lock of Python's interpreter (GIL): waiting without it, and work for it
// from threads that must not wait for it.

#ifndef PENSTOCK_PYTHON_GIL_H_
#define PENSTOCK_PYTHON_GIL_H_

#include <pybind11/pybind11.h>

#include <functional>

namespace penstock::python {

// Lets other Python threads run while it lives. Every wait, and all that may
// take a lock of gRPC's for long, stands within one. Make it on a thread that
// has the GIL.
//
// From the interpreter's exit on, a thread other than the exiting one does not
// come back from here: the interpreter that it would enter is being taken down.
class Unlocked {
 public:
  Unlocked();
  // Python 3.11 unwinds a thread that asks for the GIL too late.
  ~Unlocked() noexcept(false);
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* const state_;
};

// Runs `function` with the GIL, soon, and not within this call. Any thread may
// call it, with and without the GIL, and under any lock: it never waits for the
// GIL. So gRPC's threads let go of Python's objects. Drops `function`, without
// running or destroying it, once the interpreter is about to exit: what it
// holds leaks.
void RunLater(std::function<void()> function);

// Runs what RunLater() was given. Call it with the GIL, under no lock. The main
// thread does so by itself between two instructions of Python's.
void RunPending();

// Has RunLater() and RunPending() work in forked children, too. Call it once,
// from the module.
void SurviveForks();

// Looks for signals, such as Ctrl-C, from a thread that waits Unlocked. Returns
// whether a handler has raised an exception, which ThrowIfRaised() throws.
bool IsInterrupted();

// Throws the exception that IsInterrupted() has found. Call it with the GIL.
void ThrowIfRaised();

// Has `function` run at the interpreter's exit, with the GIL, while all else
// still works. Before it, other threads stop at the end of their Unlocked;
// after it, RunLater() ends. Call it once, from the module.
void PrepareForExit(const std::function<void()>& function);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_GIL_H_
