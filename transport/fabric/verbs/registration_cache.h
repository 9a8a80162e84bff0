// Ordinary memory that one protection domain has registered.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_REGISTRATION_CACHE_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_REGISTRATION_CACHE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/memory/bytes.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace fabric {
namespace verbs {

// A region, until the last share of it is gone.
class Registration {
 public:
  // `memory` is let go of after the region's end; it may be null.
  Registration(std::shared_ptr<const ProtectionDomain> domain,
               std::shared_ptr<const void> memory, MemoryRegion region);
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  // In a forked child the region is left to the parent.
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
  uint64_t hits = 0;       // found registered
  uint64_t misses = 0;     // registered anew
  uint64_t evictions = 0;  // of what was kept, to make room
  uint64_t kept_bytes = 0;
};

// Registering costs a system call and pins pages, so regions are used again as
// long as that is sound: as long as it is certain that their addresses have the
// pages that they had when they were registered. There are two reasons to be:
//
//   memory::StableMemory  somebody promised it. Such regions are kept within a
//                         budget, those used least recently going first, never
//                         one in use; and go when the promise is over.
//   an owner of the       the region has a share in its owner, and ends before
//   bytes                 it gives that back. It is used by whoever asks
//                         meanwhile, up to a number, and ends with its last
//                         user.
//
// Anything else is registered for its user alone. Thread-safe.
class RegistrationCache : public memory::StableMemoryWatcher {
 public:
  // Keeps at most `budget` bytes.
  static std::shared_ptr<RegistrationCache> Create(
      Api* api, std::shared_ptr<const ProtectionDomain> domain,
      uint64_t budget);
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;
  ~RegistrationCache() override;

  // A region that covers `bytes` and allows `access`. Get() registers what is
  // not, whole pages of it; Find() answers null. Whoever has the region also
  // has a share of the bytes, and gives that back last.
  absl::StatusOr<SharedRegistration> Get(const memory::Bytes& bytes,
                                         int access);
  SharedRegistration Find(const memory::Bytes& bytes, int access);

  RegistrationCounters counters() const;

  void OnOver(const memory::StableRange& range) override;

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
    SharedRegistration kept;  // null: it ends with its last user
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
  // more may be kept; false: too much is in use. They are ended by the caller,
  // without the lock.
  bool MakeRoomLocked(uint64_t bytes, Regions* out);
  // Whether anything was ended.
  bool EndUnused();

  Api* const api_;
  std::shared_ptr<const ProtectionDomain> domain_;
  const uint64_t budget_;
  const uint32_t fork_count_;

  mutable std::mutex mu_;                    // guards the rest
  std::multimap<uintptr_t, Entry> entries_;  // by where they begin
  uint64_t clock_ = 0;
  RegistrationCounters counters_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_REGISTRATION_CACHE_H_
