// A lock that many visitors share until one caller needs exclusive access.

#ifndef PENSTOCK_PS_SPARSE_GATE_H_
#define PENSTOCK_PS_SPARSE_GATE_H_

#include <condition_variable>
#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "transport/base/mutex.h"

namespace penstock::ps::sparse {

// A lock for shared visits, in which Close() has priority. Close() waits only
// for visits in progress; later visits wait for Open(). With a
// std::shared_mutex, Close() might wait for ever. Thread-safe.
class Gate {
 public:
  // A shared visit. The gate does not close while this object lives.
  class Visit {
   public:
    explicit Visit(Gate* gate) : gate_(gate) { gate_->Enter(); }
    ~Visit() { gate_->Leave(); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

   private:
    Gate* const gate_;
  };

  // Blocks until no visit is left. New visits wait until Open(). Only one
  // thread at a time may close the gate.
  void Close() {
    base::MutexLock lock(&mu_);
    closed_ = true;
    while (inside_ > 0) changed_.wait(mu_);
  }
  void Open() {
    {
      base::MutexLock lock(&mu_);
      closed_ = false;
    }
    changed_.notify_all();
  }

 private:
  void Enter() {
    base::MutexLock lock(&mu_);
    while (closed_) changed_.wait(mu_);
    ++inside_;
  }
  void Leave() {
    bool last;
    {
      base::MutexLock lock(&mu_);
      last = --inside_ == 0 && closed_;
    }
    if (last) changed_.notify_all();
  }

  base::Mutex mu_;
  std::condition_variable_any changed_;
  size_t inside_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_GATE_H_
