// Delays the destruction of values that are dropped under a lock until the lock
// is released.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_LATE_RELEASE_H_
#define PENSTOCK_TRANSPORT_CONNECTION_LATE_RELEASE_H_

#include <utility>

#include "absl/container/inlined_vector.h"

namespace penstock {
namespace connection {

// A scope that collects the values passed to Drop() on its thread, and destroys
// them when the scope ends. Create the scope before taking a lock, and destroy
// the scope after unlocking. Destroying a value may run the application's code,
// which may take long or call the transport. If scopes are nested, the
// innermost scope collects the values.
template <typename Value>
class LateRelease {
 public:
  LateRelease() : outer_(current_) { current_ = this; }
  ~LateRelease() { current_ = outer_; }
  LateRelease(const LateRelease&) = delete;
  LateRelease& operator=(const LateRelease&) = delete;

  // Destroys `value` at the end of the innermost scope. Destroys it immediately
  // if this thread has no scope.
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
