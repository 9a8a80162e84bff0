// Promises that ranges of memory keep their pages.
//
// A device that has registered memory keeps using the pages that the memory had
// at registration. If the program frees the memory and maps other pages at the
// same addresses, the device reads and writes the wrong pages. No error reports
// this misuse, and hooks into the allocator cannot detect it reliably. Only a
// range that was declared here therefore stays registered after its use.
//
// All functions here are thread-safe. Declarations hold for the whole process,
// but not for a forked child: no device of the parent serves the child.

#ifndef PENSTOCK_TRANSPORT_MEMORY_STABLE_MEMORY_H_
#define PENSTOCK_TRANSPORT_MEMORY_STABLE_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace penstock {
namespace memory {

// A declared range. The promise may have ended already.
class StableRange {
 public:
  StableRange(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  // Returns true once the promise has begun to end: watchers are being
  // notified, or have been notified.
  bool is_over() const { return is_over_; }

 private:
  friend class StableMemory;

  const uint8_t* const data_;
  const size_t size_;
  std::atomic<bool> is_over_{false};
};

// An observer of the end of every promise.
class StableMemoryWatcher {
 public:
  virtual ~StableMemoryWatcher() = default;
  // Drops everything that is kept about `range`. After this function returns,
  // the program may map other pages there. Called on the thread that ends the
  // promise, without locks.
  virtual void OnRangeEnded(const StableRange& range) = 0;
};

// Calls `watcher` at the end of each promise from now on, until the watcher is
// destroyed.
void WatchStableMemory(std::weak_ptr<StableMemoryWatcher> watcher);

// A promise, which lasts as long as this object.
class StableMemory {
 public:
  // Promises that [data, data + size) stays mapped to its present pages.
  // Returns INVALID_ARGUMENT for an empty range, and ALREADY_EXISTS if a part
  // of the range is declared already.
  static absl::StatusOr<std::unique_ptr<StableMemory>> Declare(const void* data,
                                                               size_t size);
  StableMemory(const StableMemory&) = delete;
  StableMemory& operator=(const StableMemory&) = delete;
  // Ends the promise. Blocks until all watchers have returned. Only then may
  // the caller unmap the range.
  ~StableMemory();

 private:
  explicit StableMemory(std::shared_ptr<StableRange> range);

  const std::shared_ptr<StableRange> range_;
};

// Returns the declared range that contains [data, data + size), or null.
std::shared_ptr<const StableRange> FindStable(const void* data, size_t size);

}  // namespace memory
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MEMORY_STABLE_MEMORY_H_
