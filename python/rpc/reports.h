// Numbers of things that have happened, for a thread of Python's.

#ifndef PENSTOCK_PYTHON_RPC_REPORTS_H_
#define PENSTOCK_PYTHON_RPC_REPORTS_H_

#include <condition_variable>
#include <cstdint>
#include <vector>

#include "transport/base/mutex.h"

namespace penstock::python {

// A queue of numbers. The program chooses a number for a call, and one thread
// of Python's takes the number when the call has ended. Thread-safe. Needs no
// GIL.
class Reports {
 public:
  void Add(uint64_t number) {
    base::MutexLock lock(&mu_);
    numbers_.push_back(number);
    changed_.notify_one();
  }
  // Waits until there is a number, and takes all. Call it Unlocked.
  std::vector<uint64_t> Take() {
    base::MutexLock lock(&mu_);
    while (numbers_.empty()) changed_.wait(mu_);
    std::vector<uint64_t> numbers;
    numbers.swap(numbers_);
    return numbers;
  }

  // Returns the queue of this process. A forked child has its own.
  static Reports* Get();

 private:
  base::Mutex mu_;
  std::condition_variable_any changed_;
  std::vector<uint64_t> numbers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_REPORTS_H_
