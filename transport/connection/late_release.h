// Delays the release of values until the lock is released under which the
// values were dropped.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_LATE_RELEASE_H_
#define PENSTOCK_TRANSPORT_CONNECTION_LATE_RELEASE_H_

#include <utility>

#include "absl/container/inlined_vector.h"

namespace penstock {
namespace connection {

// A scope that keeps the values that its thread passes to Drop(), and releases
// them at its end. Create the object before taking a lock, and destroy the
// object after unlocking. Releasing a value may run a destructor of the
// application. Such a destructor may take any time, and may call the transport.
// Scopes may nest; the innermost scope keeps the values.
template <typename Value>
class LateRelease {
 public:
  LateRelease() : outer_(current_) { current_ = this; }
  ~LateRelease() { current_ = outer_; }
  LateRelease(const LateRelease&) = delete;
  LateRelease& operator=(const LateRelease&) = delete;

  // Drops `value` at the end of the innermost scope, or at once if this thread
  // has no scope.
  static void Drop(Value value) {
    if (current_ != nullptr) current_->values_.push_back(std::move(value));
  }

 private:
  static thread_local LateRelease* current_;

  LateRelease* const outer_;
  absl::InlinedVector<Value, 4> values_;
};

template <typename Value>
thread_local LateRelease<Value>* LateRelease<Value>::current_ = nullptr;

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_LATE_RELEASE_H_
