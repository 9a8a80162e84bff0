// Memory that one protection domain has registered, in parts.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_POOL_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_POOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/memory/range_allocator.h"

namespace penstock {
namespace fabric {
namespace verbs {

class Pool;

// How many bytes of a pool that it shares somebody may have at once. Lives as
// long as its leases. Thread-safe.
class Quota {
 public:
  explicit Quota(uint64_t limit) : limit_(limit) {}
  // False, and nothing is taken, if it would be too much.
  bool Take(uint64_t size);
  void GiveBack(uint64_t size) { used_ -= size; }
  uint64_t limit() const { return limit_; }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

// A part of a pool, given back on any thread when it is destroyed.
class Lease {
 public:
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease();

  uint8_t* data() const { return data_; }
  uint64_t size() const { return size_; }
  // What it is a part of.
  ibv_mr* region() const { return region_; }
  uint32_t lkey() const { return region_->lkey; }

 private:
  friend class Pool;
  Lease() = default;

  std::shared_ptr<Pool> pool_;
  std::shared_ptr<Quota> quota_;  // may be null
  size_t segment_ = 0;
  uint64_t offset_ = 0;
  uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
  ibv_mr* region_ = nullptr;
};

// Grows by segments, which stay registered until the last lease and the pool's
// owner are gone; the protection domain lives as long. Registering is a system
// call that pins pages: some hundred microseconds per MiB. Thread-safe.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  // `access` is that of every segment; `budget` the bytes of all of them.
  static std::shared_ptr<Pool> Create(
      Api* api, std::shared_ptr<const ProtectionDomain> domain, int access,
      uint64_t budget);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  // Aligned to 64 bytes, and counted to `quota` if there is one.
  // RESOURCE_EXHAUSTED where that, the budget, or the memory that may be
  // locked, has no room.
  absl::StatusOr<std::shared_ptr<Lease>> Allocate(
      uint64_t size, const std::shared_ptr<Quota>& quota = nullptr);
  // Of memory that lies in one of the segments; null if it does not.
  ibv_mr* FindRegion(const uint8_t* data, uint64_t size) const;
  uint64_t registered_bytes() const;

 private:
  friend class Lease;
  // Unmaps.
  struct Mapping {
    explicit Mapping(uint64_t size);
    ~Mapping();
    uint8_t* data;  // null: no memory
    const uint64_t size;
  };
  struct Segment {
    std::unique_ptr<Mapping> mapping;
    MemoryRegion region;  // ended first
    memory::RangeAllocator ranges;
  };

  Pool(Api* api, std::shared_ptr<const ProtectionDomain> domain, int access,
       uint64_t budget);
  absl::StatusOr<std::shared_ptr<Lease>> AllocateUncounted(uint64_t size);
  absl::Status GrowLocked(uint64_t size);
  // At most `left` bytes of the budget are.
  absl::Status AddSegmentLocked(uint64_t size, uint64_t left);
  std::shared_ptr<Lease> AllocateLocked(uint64_t size);

  Api* const api_;
  const std::shared_ptr<const ProtectionDomain> domain_;
  const int access_;
  const uint64_t budget_;
  const uint32_t fork_count_;

  mutable std::mutex mu_;  // guards the rest
  uint64_t registered_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_POOL_H_
