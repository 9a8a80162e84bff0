// Keeps memory that is let go under a lock until the lock is free.

#ifndef PENSTOCK_TRANSPORT_RPC_LATE_RELEASE_H_
#define PENSTOCK_TRANSPORT_RPC_LATE_RELEASE_H_

#include <memory>
#include <vector>

#include "transport/memory/bytes.h"

namespace penstock {
namespace rpc {

// While an object of this class lives, what its thread lets go of a Guarded()
// payload lives too. Whoever takes a lock makes one first, and destroys it
// after unlocking: with the last share goes a destructor of the application,
// which may take any time. Objects may nest; the innermost one keeps.
class LateRelease {
 public:
  LateRelease() : outer_(current_) { current_ = this; }
  ~LateRelease() { current_ = outer_; }
  LateRelease(const LateRelease&) = delete;
  LateRelease& operator=(const LateRelease&) = delete;

 private:
  friend class LateOwner;

  static thread_local LateRelease* current_;

  LateRelease* const outer_;
  std::vector<std::shared_ptr<const void>> owners_;
};

// Returns the same bytes, whose owners are let go of outside locks.
memory::Payload Guarded(const memory::Payload& payload);

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_LATE_RELEASE_H_
