// Memory of a rank that its peers can read.

#ifndef PENSTOCK_COLLECTIVES_HOST_POOL_H_
#define PENSTOCK_COLLECTIVES_HOST_POOL_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/memory/range_allocator.h"

namespace penstock::collectives {

class PoolMemory;

// The pool of a group. Allocated memory keeps the pool alive, even after its
// group. Thread-safe. Owned by shared_ptr.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  // Makes a pool of the `bytes` bytes at `data`, which `owner` keeps mapped.
  Pool(uint8_t* data, uint64_t bytes, std::shared_ptr<const void> owner)
      : data_(data), bytes_(bytes), owner_(std::move(owner)), ranges_(bytes) {}

  uint64_t bytes() const { return bytes_; }

  // Returns memory that is aligned to 64 bytes. Returns RESOURCE_EXHAUSTED if
  // the pool has no free range of this size.
  absl::StatusOr<std::unique_ptr<PoolMemory>> Allocate(uint64_t bytes);

 private:
  friend class PoolMemory;

  void Free(uint64_t offset, uint64_t bytes);

  uint8_t* const data_;
  const uint64_t bytes_;
  const std::shared_ptr<const void> owner_;
  base::Mutex mu_;
  memory::RangeAllocator ranges_ ABSL_GUARDED_BY(mu_);
};

// A range of a pool, which the destructor frees. Do not destroy this object in
// the child of a fork, where the pool's lock may be held for ever.
class PoolMemory {
 public:
  PoolMemory(std::shared_ptr<Pool> pool, uint64_t offset, uint64_t size)
      : pool_(std::move(pool)), offset_(offset), size_(size) {}
  PoolMemory(const PoolMemory&) = delete;
  PoolMemory& operator=(const PoolMemory&) = delete;
  ~PoolMemory() { pool_->Free(offset_, size_); }

  void* data() const { return pool_->data_ + offset_; }
  uint64_t size() const { return size_; }

 private:
  const std::shared_ptr<Pool> pool_;
  const uint64_t offset_;
  const uint64_t size_;
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HOST_POOL_H_
