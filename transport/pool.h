// Memory that peers of this process's user can read, for those who know no
// gRPC.

#ifndef PENSTOCK_TRANSPORT_POOL_H_
#define PENSTOCK_TRANSPORT_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace penstock {

// Returns `bytes` of the pool, not cleared, which the last share gives back.
// Null if there is no room, or no shared memory. Thread-safe.
std::shared_ptr<uint8_t> AllocateFromPool(size_t bytes);

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_POOL_H_
