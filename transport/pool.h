// Allocates memory that peer processes of the same user can read, for code
// without gRPC.

#ifndef PENSTOCK_TRANSPORT_POOL_H_
#define PENSTOCK_TRANSPORT_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace penstock {

// Allocates `bytes` from the pool, uninitialised. The last reference returns
// the memory to the pool. Returns null if the pool has no room, or if there is
// no shared memory. Thread-safe.
std::shared_ptr<uint8_t> AllocateFromPool(size_t bytes);

// Raises the pool's limit to `bytes`, unless the limit is higher or
// PENSTOCK_SHM_ARENA_MIB sets it. Returns the limit. Thread-safe.
uint64_t RaisePoolLimit(uint64_t bytes);

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_POOL_H_
