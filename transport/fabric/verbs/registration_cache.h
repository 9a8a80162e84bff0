// Registrations of ordinary memory in one protection domain.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_REGISTRATION_CACHE_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_REGISTRATION_CACHE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/memory/bytes.h"
#include "transport/memory/stable_memory.h"
#include "transport/metrics/registry.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Owns a registered region, and ends it with the last reference.
class Registration {
 public:
  // Takes ownership of a region. Releases `memory`, which may be null, only
  // after deregistering the region.
  Registration(std::shared_ptr<const ProtectionDomain> domain,
               std::shared_ptr<const void> memory, MemoryRegion region);
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  // Deregisters the region. In a forked child, does nothing, because the region
  // belongs to the parent.
  ~Registration();

  ibv_mr* region() const { return region_.get(); }

 private:
  const uint32_t fork_count_;
  std::shared_ptr<const ProtectionDomain> domain_;
  std::shared_ptr<const void> memory_;
  MemoryRegion region_;
};

using SharedRegistration = std::shared_ptr<const Registration>;

struct RegistrationCounters {
  uint64_t hits = 0;       // a region was found
  uint64_t misses = 0;     // memory was registered
  uint64_t evictions = 0;  // of kept regions, to make room
  uint64_t kept_bytes = 0;
};

// Reuses registered regions, because registering costs a system call and pins
// pages. Reuses a region only while its addresses are certain to have the same
// pages as at registration. Either of two things guarantees this:
// - The program has promised stable pages by memory::StableMemory. The cache
//   keeps the region, within a budget, until the promise is over. The least
//   recently used region is evicted first, never one in use.
// - The bytes have an owner: the region holds a reference to the owner, and is
//   deregistered before the reference is released. Up to a limited number of
//   users may share the region. The region ends with its last user.
//
// Registers any other memory for its user alone. Thread-safe.
class RegistrationCache : public memory::StableMemoryWatcher {
 public:
  // Makes a cache of at most `budget` bytes.
  static std::shared_ptr<RegistrationCache> Create(
      Api* api, std::shared_ptr<const ProtectionDomain> domain,
      uint64_t budget);
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;
  ~RegistrationCache() override;

  // Return a region that covers `bytes` and allows `access`. If there is none,
  // Get() registers the whole pages of `bytes`, and Find() returns null. The
  // bytes must outlive the region.
  absl::StatusOr<SharedRegistration> Get(const memory::Bytes& bytes,
                                         int access);
  SharedRegistration Find(const memory::Bytes& bytes, int access);

  RegistrationCounters counters() const;

  void OnRangeEnded(const memory::StableRange& range) override;

 private:
  struct Extent {
    uintptr_t begin;
    uintptr_t end;
  };
  struct Entry {
    Extent extent;
    int access;
    uint64_t last_use = 0;
    int uses = 1;
    std::weak_ptr<const Registration> region;
    SharedRegistration kept;  // null: the region ends with its last user
    std::shared_ptr<const memory::StableRange> promise;
  };
  using Regions = std::vector<SharedRegistration>;

  RegistrationCache(Api* api, std::shared_ptr<const ProtectionDomain> domain,
                    uint64_t budget);
  static Extent PagesOf(const void* data, size_t size);
  // Fills in the entry's extent and promise.
  absl::StatusOr<MemoryRegion> Register(const memory::Bytes& bytes,
                                        Entry* entry);
  absl::StatusOr<MemoryRegion> Register(const Extent& extent, int access);
  void Insert(Entry entry);
  // Moves unused regions to `out`, the least recently used first, until `bytes`
  // more may be kept. Returns false if too much is in use. The caller ends the
  // regions in `out`, without the lock.
  bool EvictLocked(uint64_t bytes, Regions* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends all unused regions. Returns true if there were any.
  bool EndUnused();

  Api* const api_;
  std::shared_ptr<const ProtectionDomain> domain_;
  const uint64_t budget_;
  const metrics::Level limit_;
  metrics::Level kept_;
  metrics::Tally hits_;
  metrics::Tally misses_;
  metrics::Tally evictions_;
  const uint32_t fork_count_;

  mutable base::Mutex mu_;
  // The entries, by the begin of their ranges.
  std::multimap<uintptr_t, Entry> entries_ ABSL_GUARDED_BY(mu_);
  uint64_t clock_ ABSL_GUARDED_BY(mu_) = 0;
  RegistrationCounters counters_ ABSL_GUARDED_BY(mu_);
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_REGISTRATION_CACHE_H_
