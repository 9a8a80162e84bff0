// Settings for the sizes that a session tunes: fixed values, or measuring.

#ifndef PENSTOCK_TRANSPORT_SESSION_TUNING_H_
#define PENSTOCK_TRANSPORT_SESSION_TUNING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "transport/fabric/fabric.h"
#include "transport/protocol/stepped_size.h"

namespace penstock {
namespace session {

struct Tuning {
  // Returns the time of a monotonic clock. Called under the session's lock. If
  // null, the session measures nothing, and sizes keep the fabrics' initial
  // values.
  std::function<uint64_t()> now_ns;
  // The largest eager message and the chunk size of reads, in bytes. If 0, the
  // session measures and adapts the size. The chunk size is at most the path's
  // maximum read size.
  size_t eager_max_bytes = 0;
  size_t chunk_bytes = 0;

  protocol::SizeBounds EagerBounds(const fabric::Capabilities& path) const {
    return Bounds(path.eager_max_bytes, path.eager_range, eager_max_bytes);
  }
  protocol::SizeBounds ChunkBounds(const fabric::Capabilities& path) const {
    return Bounds(path.read_chunk_bytes, path.read_chunk_range,
                  std::min(chunk_bytes, path.max_read_bytes()));
  }

 private:
  protocol::SizeBounds Bounds(size_t start, const fabric::SizeRange& range,
                              size_t fixed) const {
    if (fixed != 0) return {fixed, fixed, fixed};
    if (now_ns == nullptr || range.most == 0) return {start, start, start};
    return {start, std::min(start, range.least), std::max(start, range.most)};
  }
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_TUNING_H_
