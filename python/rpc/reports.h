// Reports events to Python threads, by numbers.

#ifndef PENSTOCK_PYTHON_RPC_REPORTS_H_
#define PENSTOCK_PYTHON_RPC_REPORTS_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <vector>

#include "transport/base/mutex.h"
#include "transport/base/unique_fd.h"

namespace penstock::python {

// Queues of the numbers of ended calls. The program chooses a number for each
// call. A Python thread receives the number once the call has ended. The upper
// half of a number identifies its queue; each queue has its own thread, so a
// busy thread delays no other queue. Thread-safe. Needs no GIL.
class Reports {
 public:
  // The position of the queue's number within a number, in bits.
  static constexpr int kQueueShift = 32;

  // Makes a queue. Returns its number, which is not 0.
  uint64_t Open();
  // Makes a queue for an event loop, with a descriptor that is readable while
  // the queue has numbers. The descriptor stays open until Close(). Returns 0
  // if no descriptor is available.
  uint64_t OpenReadable();
  // Returns the descriptor of an open queue that OpenReadable() made.
  int DescriptorOf(uint64_t queue);
  // Adds a number to its queue. Drops the number if the queue is closed.
  void Add(uint64_t number);
  // Waits until the queue has a number, and removes and returns all its
  // numbers. Returns no numbers once the queue is closed. Call this function
  // Unlocked, on one thread for each queue.
  std::vector<uint64_t> Take(uint64_t queue);
  // Removes and returns all numbers of a queue that OpenReadable() made. Does
  // not wait.
  std::vector<uint64_t> TakeReady(uint64_t queue);
  void Close(uint64_t queue);

  // Returns the queues of this process. A forked child has its own.
  static Reports* Get();

 private:
  struct Queue {
    std::condition_variable_any changed;
    std::vector<uint64_t> numbers;
    bool closed = false;
    base::UniqueFd readable;  // an eventfd, for an event loop
  };

  base::Mutex mu_;
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;
  // The queues by their numbers. Take() removes a closed queue without a
  // descriptor.
  std::map<uint64_t, Queue> queues_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_REPORTS_H_
