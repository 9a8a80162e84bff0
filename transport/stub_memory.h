// Shared memory into which gRPC's stubs serialise messages.

#ifndef PENSTOCK_TRANSPORT_STUB_MEMORY_H_
#define PENSTOCK_TRANSPORT_STUB_MEMORY_H_

#include <grpc/slice.h>

#include <cstddef>

#include "absl/types/optional.h"

namespace penstock {

// The smallest slice from the pool. Shorter messages are sent eagerly, from any
// memory.
constexpr size_t kPooledSliceBytes = 16 * 1024;

// Makes gRPC's C++ allocate slices of kPooledSliceBytes or more from the pool
// (pool.h) from now on: the slices that stubs serialise into, and those of
// grpc::Slice(size_t). Shared memory then carries their messages without a
// copy. Slices come from the heap if the pool has no room, and in the child of
// a fork, where a thread that the child does not have may hold the pool's lock.
//
// Works for the whole process and cannot be undone. May be called at any time,
// also before gRPC is initialised; calls after the first do nothing.
// Thread-safe by itself. But gRPC reads the pointer that this sets without a
// lock, so call it before messages are sent.
void ServeStubsFromPool();

// Returns a slice from the pool, for users of gRPC's core. Returns none if the
// slice would come from the heap, as it does if ServeStubsFromPool() was not
// called. Thread-safe.
absl::optional<grpc_slice> NewPooledSlice(size_t length);

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_STUB_MEMORY_H_
