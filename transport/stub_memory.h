// Where stubs serialise messages to.

#ifndef PENSTOCK_TRANSPORT_STUB_MEMORY_H_
#define PENSTOCK_TRANSPORT_STUB_MEMORY_H_

#include <grpc/slice.h>

#include <cstddef>

#include "absl/types/optional.h"

namespace penstock {

// Shorter messages are sent eagerly, from wherever they lie.
constexpr size_t kPooledSliceBytes = 16 * 1024;

// Has gRPC's C++ take slices of kPooledSliceBytes or more from the pool
// (pool.h) from now on: those that stubs serialise into, and
// grpc::Slice(size_t). Shared memory then carries their messages without a
// copy. Slices come from the heap where the pool has no room, and in the child
// of a fork, where a thread that is not there may hold the pool's lock.
//
// Works for the whole process and cannot be undone. Call it at any time, also
// before gRPC is initialised; calls after the first do nothing. Thread-safe,
// but for gRPC, which reads the pointer that this sets without a lock: so call
// it before messages are sent.
void ServeStubsFromPool();

// Returns such a slice, for those who use gRPC's core. None if it would come
// from the heap, as it does where ServeStubsFromPool() was not called.
// Thread-safe.
absl::optional<grpc_slice> NewPooledSlice(size_t length);

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_STUB_MEMORY_H_
