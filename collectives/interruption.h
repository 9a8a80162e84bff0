// Lets a program end its own waits, for example at Ctrl-C.

#ifndef PENSTOCK_COLLECTIVES_INTERRUPTION_H_
#define PENSTOCK_COLLECTIVES_INTERRUPTION_H_

namespace penstock::collectives {

// While an object lives, operations that this thread runs call `asks` about
// every 20 ms of a wait for other ranks. If `asks` returns true, the operation
// ends its group, as Abort() does. Objects of one thread nest: the last one
// counts.
class Interruptible {
 public:
  using Asks = bool (*)();

  // A null `asks` lets nothing interrupt.
  explicit Interruptible(Asks asks);
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible();

 private:
  const Asks outer_;
};

// Asks the object of this thread. Returns false if there is none.
bool IsWaitInterrupted();

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_INTERRUPTION_H_
