// Lets a program end its own waits, for example after Ctrl-C.

#ifndef PENSTOCK_COLLECTIVES_INTERRUPTION_H_
#define PENSTOCK_COLLECTIVES_INTERRUPTION_H_

namespace penstock::collectives {

// Makes operations of this thread interruptible while the object lives. An
// operation that waits for other ranks calls `asks` about every 20 ms. If
// `asks` returns true, the operation ends its group, as Abort() does. If a
// thread has several such objects, the newest one is used.
class Interruptible {
 public:
  using Asks = bool (*)();

  // Makes an object that calls `asks`. If `asks` is null, nothing interrupts
  // this thread's operations.
  explicit Interruptible(Asks asks);
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible();

 private:
  const Asks outer_;
};

// Calls `asks` of this thread's object. Returns false if there is no object.
bool IsWaitInterrupted();

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_INTERRUPTION_H_
