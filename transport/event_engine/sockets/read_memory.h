// The memory into which a socket is read.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_SOCKETS_READ_MEMORY_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_SOCKETS_READ_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "grpc/event_engine/slice.h"
#include "grpc/event_engine/slice_buffer.h"

namespace penstock {
namespace event_engine {

// Blocks of memory that reads fill one after another. These blocks, like the
// bytes received over a path, do not count against gRPC's memory quota: the
// quota's allocator runs pending work of gRPC, which would take locks that the
// caller holds. Not thread-safe.
class ReadMemory {
 public:
  using SliceBuffer = grpc_event_engine::experimental::SliceBuffer;

  // Returns memory for the next read, which is never empty.
  absl::Span<uint8_t> Next();
  // Appends the first `size` bytes of Next() to `*to`. Copies short data, which
  // would otherwise keep a whole block alive.
  void Take(size_t size, SliceBuffer* to);

 private:
  grpc_event_engine::experimental::Slice block_;
  size_t used_ = 0;  // bytes of block_
  size_t wanted_ = kLeastBlock;

  static constexpr size_t kLeastBlock = 8 * 1024;
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_SOCKETS_READ_MEMORY_H_
