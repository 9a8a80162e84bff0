// Registrations of GPUs' memory in one protection domain.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_REGISTRATIONS_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_REGISTRATIONS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "transport/base/mutex.h"
#include "transport/fabric/verbs/gpu_direct.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/fabric/verbs/registration_cache.h"
#include "transport/memory/bytes.h"
#include "transport/memory/destinations.h"
#include "transport/memory/device_access.h"
#include "transport/metrics/registry.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Limits the unused regions that are kept, and sets which memory is worth a
// region of its own.
struct GpuKeeping {
  uint64_t bytes = 0;
  size_t regions = 256;
  // The smallest memory that is registered for one message, in bytes. Smaller
  // memory is copied.
  size_t least_alone = 0;
  // The idle time after which a region ends. The limit is short, because an
  // idle region may be the last owner of memory that the program has freed.
  absl::Duration idle = absl::Seconds(5);
};

// Caches registrations of GPU memory, because a registration takes about 100
// us. A lookup uses the allocation's id (memory::SharedAllocation::id) and the
// address of the bytes. An address alone is ambiguous: a GPU allocation is
// freed without notice, and a later allocation may reuse its addresses. Ids are
// never reused.
//
// A region whose allocation was freed gets no new users. The region ends when a
// new region is made at its addresses, when it is idle, or to make room.
//
// Not cached, but registered for one user:
//  - memory without an id;
//  - bytes that peers read by the region's own key, because that key must not
//    outlive the message.
//
// Thread-safe.
class GpuRegistrations : public std::enable_shared_from_this<GpuRegistrations> {
 public:
  // The destination of a READ.
  struct Target {
    SharedRegistration region;
    memory::DeviceAccess* gpu = nullptr;
  };

  // Memory for peers to read.
  struct ToSend {
    SharedRegistration region;
    // True if peers read by the region's own key, which covers the whole region
    // from ibv_mr::addr on. If false, a window must be bound to the region.
    bool by_key = false;
  };

  // Makes an empty cache. `access` is for regions by peermem.
  static std::shared_ptr<GpuRegistrations> Create(
      std::shared_ptr<const ProtectionDomain> domain,
      std::shared_ptr<GpuDirect> direct, int access, GpuKeeping keeping);
  GpuRegistrations(const GpuRegistrations&) = delete;
  GpuRegistrations& operator=(const GpuRegistrations&) = delete;
  ~GpuRegistrations();

  // Return a region that covers the bytes of a GPU, by the way that works: for
  // peers to read, or as a destination of READs. The region covers the whole
  // allocation, if the allocation is not too large. Fails for bytes without an
  // id unless there are more than `least_unnamed` bytes. The bytes must outlive
  // the region. May block for a trial (gpu_reach.h).
  absl::StatusOr<ToSend> GetToSend(const memory::Bytes& bytes,
                                   size_t least_unnamed);
  absl::StatusOr<SharedRegistration> GetToReceive(
      const memory::Destination& into, size_t least_unnamed);

  // Registers a destination, which no other code uses. The registration ends
  // with the result. Returns null if READs into the destination are impossible,
  // or if their writes would not become visible.
  std::shared_ptr<const void> Prepare(const memory::Destination& into,
                                      size_t least_unnamed);
  // Returns the prepared region of [data, data + size), or null if there is
  // none. Very cheap while nothing is prepared.
  Target FindPrepared(const uint8_t* data, size_t size) const;

  // Ends regions that have been unused for a while. Call it periodically.
  void OnTick(absl::Time now);

  RegistrationCounters counters() const;

 private:
  class Prepared;
  struct Entry {
    memory::DeviceAccess* gpu = nullptr;
    uint64_t id = 0;
    GpuWay way = GpuWay::kDmabuf;
    absl::Span<const uint8_t> range;
    SharedRegistration region;
    absl::Time last_use;

    bool Covers(absl::Span<const uint8_t> other) const;
    bool Overlaps(absl::Span<const uint8_t> other) const;
    // Returns true if no other reference exists. New references are given only
    // under the lock.
    bool is_idle() const { return region.use_count() == 1; }
  };
  using Entries = std::list<Entry>;

  GpuRegistrations(std::shared_ptr<const ProtectionDomain> domain,
                   std::shared_ptr<GpuDirect> direct, int access,
                   GpuKeeping keeping);
  // A range of GPU memory, its allocation if the allocation has an id, and the
  // GPU's GpuReach.
  struct Piece {
    memory::Bytes bytes;
    absl::optional<memory::SharedAllocation> allocation;
    GpuReach* reach = nullptr;
  };
  // Describes `bytes` as a piece. Returns an error if the bytes cannot, or
  // should not, be registered for `use`.
  absl::StatusOr<Piece> Look(GpuUse use, const memory::Bytes& bytes,
                             size_t least_unnamed);
  // Returns an existing region for the piece, or makes one. If `is_trial`, the
  // region covers only the piece's bytes, not the whole allocation.
  absl::StatusOr<SharedRegistration> Get(GpuWay way, const Piece& piece,
                                         bool is_trial);
  SharedRegistration FindLocked(GpuWay way, const Piece& piece)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<SharedRegistration> Make(GpuWay way, const Piece& piece,
                                          bool is_trial);
  absl::StatusOr<SharedRegistration> MakeForPeers(const memory::Bytes& bytes);
  void CountMiss();
  // Calls `make`, which makes a region. If there is no room, ends unused
  // regions, and calls `make` again.
  absl::StatusOr<SharedRegistration> Register(
      absl::FunctionRef<absl::StatusOr<MemoryRegion>()> make);
  absl::StatusOr<SharedRegistration> RegisterRange(
      GpuWay way, memory::DeviceAccess* gpu, absl::Span<const uint8_t> range);
  // Returns the part of the allocation that is registered for the piece.
  static absl::Span<const uint8_t> PagesOf(const Piece& piece);
  SharedRegistration Keep(Entry entry);
  // Moves `entry` to `out`. The owner of `out` ends it without the lock.
  void RemoveLocked(Entries::iterator entry, Entries* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Moves idle entries to `out` until there is room for `bytes` more. Returns
  // false if too much is in use.
  bool EvictLocked(uint64_t bytes, Entries* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Moves entries to `out` that are unused since `used_until`.
  void RemoveIdleLocked(absl::Time used_until, Entries* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends all unused regions. Returns true if there were any.
  bool EndIdle();

  std::shared_ptr<const ProtectionDomain> domain_;
  const std::shared_ptr<GpuDirect> direct_;
  const int access_;
  const uint32_t fork_count_;
  const GpuKeeping keeping_;
  const metrics::Level limit_;
  metrics::Level kept_;
  metrics::Tally hits_;
  metrics::Tally misses_;
  metrics::Tally evictions_;

  std::atomic<int> prepared_count_{0};
  mutable base::Mutex mu_;
  // The entries, the most recently used first.
  Entries entries_ ABSL_GUARDED_BY(mu_);
  std::vector<const Prepared*> prepared_ ABSL_GUARDED_BY(mu_);
  RegistrationCounters counters_ ABSL_GUARDED_BY(mu_);
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_REGISTRATIONS_H_
