// Copies that bypass the caches.

#ifndef PENSTOCK_COLLECTIVES_HOST_STREAMING_COPY_H_
#define PENSTOCK_COLLECTIVES_HOST_STREAMING_COPY_H_

#include <cstddef>

namespace penstock::collectives {

// Smaller copies go through the caches: a peer reads a few dirty lines sooner
// than memory.
inline constexpr size_t kMinStreamedBytes = 32 * 1024;

// Copies to memory that another core reads next, or that no core reads soon. If
// the bytes stay in this core's cache, each line costs the reader a transfer
// between two cores. Between cores without a common cache, such transfers take
// ten times as long as reads from memory.
//
// `from` and `to` may be the same, but do not overlap otherwise. A store with
// memory_order_release publishes the copy.
void StreamingCopy(const void* from, void* to, size_t bytes);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HOST_STREAMING_COPY_H_
