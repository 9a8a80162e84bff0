// Keeps slices that are dropped under a lock until the lock is free.

#ifndef PENSTOCK_TRANSPORT_GRPC_LATE_RELEASE_H_
#define PENSTOCK_TRANSPORT_GRPC_LATE_RELEASE_H_

#include "absl/container/inlined_vector.h"
#include "src/core/lib/slice/slice.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// While an object of this class lives, slices that its thread passes to Drop()
// live too. Whoever takes a lock makes one first, and destroys it after
// unlocking: with its last reference a slice calls a destructor of the
// application, which may take any time, or call gRPC. Objects may nest; the
// innermost one keeps the slices.
class LateRelease {
 public:
  LateRelease() : outer_(current_) { current_ = this; }
  ~LateRelease() { current_ = outer_; }
  LateRelease(const LateRelease&) = delete;
  LateRelease& operator=(const LateRelease&) = delete;

  // Drops `slice` at once if this thread has no LateRelease.
  static void Drop(grpc_core::Slice slice);
  // Drops all slices of `buffer`, and leaves it empty.
  static void DropAll(grpc_core::SliceBuffer* buffer);

 private:
  static thread_local LateRelease* current_;

  LateRelease* const outer_;
  absl::InlinedVector<grpc_core::Slice, 4> slices_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_LATE_RELEASE_H_
