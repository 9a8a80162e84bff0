// Copies that bypass the caches.

#ifndef PENSTOCK_TRANSPORT_BASE_STREAMING_COPY_H_
#define PENSTOCK_TRANSPORT_BASE_STREAMING_COPY_H_

#include <cstddef>

namespace penstock {
namespace base {

// The minimum size of a streaming copy. Smaller copies go through the caches,
// because a peer reads a few dirty lines sooner than memory.
constexpr size_t kMinStreamedBytes = 32 * 1024;

// Copies to memory that another core reads next, or that no core reads soon.
// Bypasses the caches: if the bytes stayed in this core's cache, each line
// would cost the reader a transfer between two cores. Between cores without a
// common cache, such transfers take ten times as long as reads from memory.
//
// `from` and `to` may be equal, but must not overlap otherwise. To publish the
// copy, store with memory_order_release.
void StreamingCopy(const void* from, void* to, size_t bytes);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_STREAMING_COPY_H_
