// The deadlines of the calls that a server has received.

#ifndef PENSTOCK_PYTHON_RPC_DEADLINES_H_
#define PENSTOCK_PYTHON_RPC_DEADLINES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "transport/base/mutex.h"
#include "transport/progress/event_loop.h"

namespace penstock::python {

// Calls functions at their deadlines. Most calls end long before their
// deadline. Therefore each deadline is only an entry here, and one timer of the
// loop serves all entries. Thread-safe. Needs no GIL.
class Deadlines : public std::enable_shared_from_this<Deadlines> {
 public:
  class Entry;

  // Calls `expire` once, on the loop's thread, soon after base::SteadyNow() has
  // reached `when`, unless the entry is destroyed or dropped before. A call of
  // `expire` may still be running after the entry's end. Never calls `expire`
  // if `when` is infinite.
  Entry Add(absl::Time when, std::function<void()> expire);

 private:
  using Key = std::pair<absl::Time, uint64_t>;

  void Drop(const Key& key);
  void SetTimerLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnTimer(absl::Time when);

  base::Mutex mu_;
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<Key, std::function<void()>> entries_ ABSL_GUARDED_BY(mu_);
  // The loop's timer, and its time. The time is infinite if there is no timer.
  progress::EventLoop::Id timer_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Time timer_time_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
};

// Keeps a deadline alive until this object is destroyed. Thread-safe.
class Deadlines::Entry {
 public:
  Entry(std::shared_ptr<Deadlines> owner, const Key& key)
      : owner_(std::move(owner)), key_(key) {}
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ~Entry() { Drop(); }

  absl::Time when() const { return key_.first; }
  void Drop() const {
    if (owner_ != nullptr) owner_->Drop(key_);
  }

 private:
  const std::shared_ptr<Deadlines> owner_;  // null without a deadline
  const Key key_;
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_DEADLINES_H_
