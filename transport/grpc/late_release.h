// Slices that are let go while a lock is held.

#ifndef PENSTOCK_TRANSPORT_GRPC_LATE_RELEASE_H_
#define PENSTOCK_TRANSPORT_GRPC_LATE_RELEASE_H_

#include "absl/container/inlined_vector.h"
#include "src/core/lib/slice/slice.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// While one lives, the slices that its thread drops stay until it is destroyed.
// The last reference to a slice runs a destructor of the application's, which
// may take as long as it likes, or call gRPC. So whoever locks has one of
// these, and destroys it after it has unlocked. They may nest.
class LateRelease {
 public:
  LateRelease() : outer_(current_) { current_ = this; }
  ~LateRelease() { current_ = outer_; }
  LateRelease(const LateRelease&) = delete;
  LateRelease& operator=(const LateRelease&) = delete;

  static void Drop(grpc_core::Slice slice);
  // Empties the buffer.
  static void DropAll(grpc_core::SliceBuffer* buffer);

 private:
  static thread_local LateRelease* current_;

  LateRelease* const outer_;
  absl::InlinedVector<grpc_core::Slice, 4> slices_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_LATE_RELEASE_H_
