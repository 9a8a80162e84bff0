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

// Bounds what is kept while nobody uses it, and what is registered to be ended
// again at once.
struct GpuKeeping {
  uint64_t bytes = 0;
  size_t regions = 256;
  // What peers read by a region of its own is copied below this.
  size_t least_alone = 0;
  // A kept region may be all that keeps memory which the program has freed.
  absl::Duration idle = absl::Seconds(5);
};

// Registers GPUs' memory, and uses regions again: making one takes some 100 us.
// A GPU's allocation is freed without a word to us, and another may come to lie
// at its addresses. So a region is found by the name of its allocation
// (memory::SharedAllocation::id), which no other one has; its address is that
// of the caller's bytes, whose allocation lives. A region that was overtaken is
// used by nobody new, and ends when the next one is made there, when it was
// idle, or for room. What has no such name is registered for one user; so is
// what peers read by the region's own key, of just its bytes, as that key must
// not outlive the message. Thread-safe.
class GpuRegistrations : public std::enable_shared_from_this<GpuRegistrations> {
 public:
  // Where a READ comes to lie.
  struct Target {
    SharedRegistration region;
    memory::DeviceAccess* gpu = nullptr;
  };

  // What peers read.
  struct ToSend {
    SharedRegistration region;
    // Whether they read it by its own key, all of it, from ibv_mr::addr on.
    // Else a window on the bytes is to be bound to it.
    bool by_key = false;
  };

  // `access` is what regions by peermem allow.
  static std::shared_ptr<GpuRegistrations> Create(
      std::shared_ptr<const ProtectionDomain> domain,
      std::shared_ptr<GpuDirect> direct, int access, GpuKeeping keeping);
  GpuRegistrations(const GpuRegistrations&) = delete;
  GpuRegistrations& operator=(const GpuRegistrations&) = delete;
  ~GpuRegistrations();

  // Return a region that covers the bytes, of a GPU, by the way that works: for
  // peers to read them, and for READs to come to lie in them. It is of all
  // their allocation, if that is not too large. Bytes without a name, as said
  // above, have to be more than `least_unnamed`. The caller keeps them for as
  // long as it has the region. May block, for a trial (gpu_reach.h).
  absl::StatusOr<ToSend> GetToSend(const memory::Bytes& bytes,
                                   size_t least_unnamed);
  absl::StatusOr<SharedRegistration> GetToReceive(
      const memory::Destination& into, size_t least_unnamed);

  // Registers a destination, which nobody else uses, for as long as the result
  // is held. Returns null if READs cannot be had there, or if what they write
  // would not become visible.
  std::shared_ptr<const void> Prepare(const memory::Destination& into,
                                      size_t least_unnamed);
  // Returns what was prepared for [data, data + size). Has null if there is
  // none; which costs next to nothing as long as nothing is prepared.
  Target FindPrepared(const uint8_t* data, size_t size) const;

  // Ends what nobody has used for a while. Call it every now and then.
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
    // Nobody else has a share, and nobody gets one without the lock.
    bool is_idle() const { return region.use_count() == 1; }
  };
  using Entries = std::list<Entry>;

  GpuRegistrations(std::shared_ptr<const ProtectionDomain> domain,
                   std::shared_ptr<GpuDirect> direct, int access,
                   GpuKeeping keeping);
  // Bytes, the allocation that they lie in, if it has a name, and what is known
  // of their GPU.
  struct Piece {
    memory::Bytes bytes;
    absl::optional<memory::SharedAllocation> allocation;
    GpuReach* reach = nullptr;
  };
  // Returns an error if they cannot be registered for `use`, or should not.
  absl::StatusOr<Piece> Look(GpuUse use, const memory::Bytes& bytes,
                             size_t least_unnamed);
  // Returns a region that is there, or makes one: for a trial, of no more than
  // the bytes.
  absl::StatusOr<SharedRegistration> Get(GpuWay way, const Piece& piece,
                                         bool is_trial);
  SharedRegistration FindLocked(GpuWay way, const Piece& piece)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<SharedRegistration> Make(GpuWay way, const Piece& piece,
                                          bool is_trial);
  absl::StatusOr<SharedRegistration> MakeForPeers(const memory::Bytes& bytes);
  void CountMiss();
  // Calls `make`, which makes a region. If there is no room, ends what nobody
  // uses, and calls it again.
  absl::StatusOr<SharedRegistration> Register(
      absl::FunctionRef<absl::StatusOr<MemoryRegion>()> make);
  absl::StatusOr<SharedRegistration> RegisterRange(
      GpuWay way, memory::DeviceAccess* gpu, absl::Span<const uint8_t> range);
  // Returns the part of the allocation that is registered for the piece.
  static absl::Span<const uint8_t> PagesOf(const Piece& piece);
  SharedRegistration Keep(Entry entry);
  // Moves `entry` to `out`, whose owner ends it without the lock.
  void RemoveLocked(Entries::iterator entry, Entries* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes room for one of `bytes` more. Returns false if too much is in use.
  bool EvictLocked(uint64_t bytes, Entries* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Moves to `out` what nobody uses, nor has since `used_until`.
  void RemoveIdleLocked(absl::Time used_until, Entries* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends all that nobody uses. Returns whether there was any.
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
  // The most recently used first.
  Entries entries_ ABSL_GUARDED_BY(mu_);
  std::vector<const Prepared*> prepared_ ABSL_GUARDED_BY(mu_);
  RegistrationCounters counters_ ABSL_GUARDED_BY(mu_);
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_REGISTRATIONS_H_
