// Delays the release of slices that are dropped under a lock until the lock is
// released.

#ifndef PENSTOCK_TRANSPORT_GRPC_INTERNAL_LATE_SLICES_H_
#define PENSTOCK_TRANSPORT_GRPC_INTERNAL_LATE_SLICES_H_

#include <utility>

#include "src/core/lib/slice/slice.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "transport/connection/late_release.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

using LateSlices = connection::LateRelease<grpc_core::Slice>;

// Drops `slice`. If the slice has a reference count, it is released later, when
// the thread holds no locks. Other slices need no release.
inline void DropLate(grpc_core::Slice slice) {
  if (slice.c_slice().refcount != nullptr) LateSlices::Drop(std::move(slice));
}

// Drops all slices of `buffer`, and leaves it empty.
inline void DropAllLate(grpc_core::SliceBuffer* buffer) {
  while (buffer->Count() > 0) DropLate(buffer->TakeFirst());
}

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_INTERNAL_LATE_SLICES_H_
