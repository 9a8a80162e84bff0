// A pool of short buffers.

#ifndef PENSTOCK_TRANSPORT_BASE_BUFFER_POOL_H_
#define PENSTOCK_TRANSPORT_BASE_BUFFER_POOL_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace penstock {
namespace base {

// Keeps short buffers for reuse, so that a steady flow of small messages needs
// no heap allocation. Keeps only a few buffers, as many as small calls need at
// a time. Not thread-safe.
class BufferPool {
 public:
  static constexpr size_t kMaxBuffers = 6;
  static constexpr size_t kMinBytes = 512;
  static constexpr size_t kMaxBytes = 2 * kMinBytes;

  BufferPool() = default;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // Returns an empty buffer with room for at least kMinBytes.
  std::string Take() {
    std::string buffer;
    if (spare_.empty()) {
      buffer.reserve(kMinBytes);
    } else {
      buffer = std::move(spare_.back());
      spare_.pop_back();
    }
    return buffer;
  }

  // Keeps the memory of `buffer`. Frees it if the pool is full, or if the
  // capacity is not between kMinBytes and kMaxBytes.
  void Give(std::string buffer) {
    const size_t room = buffer.capacity();
    if (room < kMinBytes || room > kMaxBytes) return;
    if (spare_.size() >= kMaxBuffers) return;
    buffer.clear();
    spare_.push_back(std::move(buffer));
  }

 private:
  std::vector<std::string> spare_;
};

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_BUFFER_POOL_H_
