// Memory that is registered in one protection domain, and leased in parts.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_POOL_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_POOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/memory/range_allocator.h"
#include "transport/metrics/registry.h"

namespace penstock {
namespace fabric {
namespace verbs {

class Pool;

// Limits the bytes that one connection may take from a shared pool. Lives as
// long as the leases that count against it. Thread-safe.
class Quota {
 public:
  explicit Quota(uint64_t limit) : limit_(limit) {}
  // Counts `size` bytes. Returns false, and counts nothing, if this exceeds the
  // limit.
  bool Take(uint64_t size);
  void GiveBack(uint64_t size) { used_ -= size; }
  uint64_t limit() const { return limit_; }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

// A leased part of a pool, which nobody else uses. Holds a reference to the
// pool. May be destroyed on any thread.
class PoolLease {
 public:
  PoolLease(const PoolLease&) = delete;
  PoolLease& operator=(const PoolLease&) = delete;
  ~PoolLease();

  uint8_t* data() const { return data_; }
  uint64_t size() const { return size_; }
  // Returns the registered region that contains this part.
  ibv_mr* region() const { return region_; }
  uint32_t lkey() const { return region_->lkey; }

 private:
  friend class Pool;
  PoolLease() = default;

  std::shared_ptr<Pool> pool_;
  std::shared_ptr<Quota> quota_;  // may be null
  size_t segment_ = 0;
  uint64_t offset_ = 0;
  uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
  ibv_mr* region_ = nullptr;
};

// A pool that grows by segments. Segments and the protection domain stay until
// the pool's owner and the last lease are destroyed. Growing is a system call
// that pins pages, and takes some hundred microseconds per MiB. Thread-safe.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  // Registers each segment with `access`, and at most `budget` bytes in total.
  static std::shared_ptr<Pool> Create(
      Api* api, std::shared_ptr<const ProtectionDomain> domain, int access,
      uint64_t budget);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  // Leases `size` bytes, aligned to 64, and counts them against `quota` if
  // there is one. Returns RESOURCE_EXHAUSTED if the quota or the budget is used
  // up, or if no more memory may be locked.
  absl::StatusOr<std::shared_ptr<PoolLease>> Allocate(
      uint64_t size, const std::shared_ptr<Quota>& quota = nullptr);
  // Returns the region that contains [data, data + size), or null if the range
  // is not in one segment of this pool.
  ibv_mr* FindRegion(const uint8_t* data, uint64_t size) const;
  uint64_t registered_bytes() const;

 private:
  friend class PoolLease;
  // Owns memory mapped from the system, and unmaps the memory when destroyed.
  struct Mapping {
    explicit Mapping(uint64_t size);
    ~Mapping();
    uint8_t* data;  // null: no memory
    const uint64_t size;
  };
  struct Segment {
    std::unique_ptr<Mapping> mapping;
    MemoryRegion region;  // destroyed first
    memory::RangeAllocator ranges;
  };

  Pool(Api* api, std::shared_ptr<const ProtectionDomain> domain, int access,
       uint64_t budget);
  absl::StatusOr<std::shared_ptr<PoolLease>> AllocateUncounted(uint64_t size);
  absl::Status GrowLocked(uint64_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Adds a segment for `size` bytes, of at most `left`.
  absl::Status AddSegmentLocked(uint64_t size, uint64_t left)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::shared_ptr<PoolLease> AllocateLocked(uint64_t size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Api* const api_;
  const std::shared_ptr<const ProtectionDomain> domain_;
  const int access_;
  const uint64_t budget_;
  const metrics::Level limit_;
  metrics::Level used_;
  metrics::Level reserved_;
  const uint32_t fork_count_;

  mutable base::Mutex mu_;
  uint64_t registered_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<Segment> segments_ ABSL_GUARDED_BY(mu_);
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_POOL_H_
