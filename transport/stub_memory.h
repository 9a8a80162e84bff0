// Shared memory into which gRPC's stubs serialise messages.

#ifndef PENSTOCK_TRANSPORT_STUB_MEMORY_H_
#define PENSTOCK_TRANSPORT_STUB_MEMORY_H_

#include <grpc/slice.h>

#include <cstddef>

#include "absl/types/optional.h"

namespace penstock {

// The smallest slice that is allocated from the pool, in bytes. Shorter
// messages are sent eagerly, which works from any memory.
constexpr size_t kPooledSliceBytes = 16 * 1024;

// Makes gRPC's C++ allocate its slices of kPooledSliceBytes or more from the
// pool (pool.h) from now on. These are the slices into which stubs serialise,
// and slices made by grpc::Slice(size_t). Shared memory then carries their
// messages without a copy. Slices come from the heap if the pool has no room.
// In the child of a fork, all slices come from the heap, because a thread of
// the parent may have held the pool's lock.
//
// Works for the whole process and cannot be undone. May be called at any time,
// also before gRPC is initialised; calls after the first do nothing. Call
// before messages are sent, because gRPC reads the replaced function pointer
// without a lock. Otherwise thread-safe.
void ServeStubsFromPool();

// Returns a slice from the pool, for users of gRPC's core. Returns none if
// ServeStubsFromPool() was not called, or if the slice would come from the
// heap. Thread-safe.
absl::optional<grpc_slice> NewPooledSlice(size_t length);

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_STUB_MEMORY_H_
