// Memory whose owner has promised not to change what lies under its addresses.
//
// A device that has registered memory keeps the pages that were there then. If
// a program frees that memory and maps other pages at the same addresses, the
// device goes on with the old ones. Nobody tells us of that, and hooks into the
// allocator are no way of finding out; so what is to stay registered beyond its
// use must be declared here.

#ifndef PENSTOCK_TRANSPORT_MEMORY_STABLE_MEMORY_H_
#define PENSTOCK_TRANSPORT_MEMORY_STABLE_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace penstock {
namespace memory {

// A range that was declared. It may be over by the time that it is looked at.
class StableRange {
 public:
  StableRange(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  // The promise holds no more, or is about to end: OnOver() has been called or
  // will be.
  bool is_over() const { return is_over_; }

 private:
  friend class StableMemory;

  const uint8_t* const data_;
  const size_t size_;
  std::atomic<bool> is_over_{false};
};

// Told of the end of every promise, on the thread that ends it and before it is
// ended: what is kept about the range must not be used for another once this
// returns. Called without locks.
class StableMemoryWatcher {
 public:
  virtual ~StableMemoryWatcher() = default;
  virtual void OnOver(const StableRange& range) = 0;
};

// From now on, until it is gone.
void WatchStableMemory(std::weak_ptr<StableMemoryWatcher> watcher);

// The promise, while it lives. All of this file is thread-safe and of the whole
// process.
class StableMemory {
 public:
  // [data, data + size) stays mapped to the pages that it is mapped to now.
  // INVALID_ARGUMENT for nothing; ALREADY_EXISTS if a part was declared before
  // and still is.
  static absl::StatusOr<std::unique_ptr<StableMemory>> Declare(const void* data,
                                                               size_t size);
  StableMemory(const StableMemory&) = delete;
  StableMemory& operator=(const StableMemory&) = delete;
  // Tells all watchers.
  ~StableMemory();

 private:
  explicit StableMemory(std::shared_ptr<StableRange> range);

  const std::shared_ptr<StableRange> range_;
};

// The one declared range that [data, data + size) lies in; null: none.
std::shared_ptr<const StableRange> FindStable(const void* data, size_t size);

}  // namespace memory
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MEMORY_STABLE_MEMORY_H_
