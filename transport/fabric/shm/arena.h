// Shared memory for payloads that peers read.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_ARENA_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_ARENA_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "transport/base/mutex.h"
#include "transport/fabric/shm/arena_segment.h"
#include "transport/fabric/shm/huge_pages.h"
#include "transport/metrics/registry.h"

namespace penstock {
namespace fabric {
namespace shm {

class Arena;

// A leased part of an arena, which nobody else uses. Holds a reference to the
// arena. May be destroyed on any thread.
class ArenaLease {
 public:
  ArenaLease(const ArenaLease&) = delete;
  ArenaLease& operator=(const ArenaLease&) = delete;
  ~ArenaLease();

  uint8_t* data() const;
  uint64_t size() const { return size_; }
  Place place() const;

 private:
  friend class Arena;

  ArenaLease(std::shared_ptr<Arena> arena, ArenaSegment* segment,
             uint64_t offset, uint64_t size);

  const std::shared_ptr<Arena> arena_;
  ArenaSegment* const segment_;
  const uint64_t offset_;
  const uint64_t size_;
};

// A user of an arena that lends the arena's memory to a peer.
class ArenaWatcher {
 public:
  virtual ~ArenaWatcher() = default;
  // Announces that nobody uses the segment any more. The memory exists until
  // all processes that have mapped the segment unmap it. Called on the event
  // loop's thread, without locks.
  virtual void OnGivenBack(uint32_t segment_id) = 0;
  // Frees memory that the peer has returned. Called when the arena has no room,
  // on any thread, without the arena's lock.
  virtual void ReclaimLoans() = 0;
};

// Shared memory that peers of one user may read. A peer that receives a segment
// can read all of it. Peers of other users have arenas of their own
// (user_arenas.h).
//
// Grows by segments, and keeps the first segment for good. Clearing the pages
// of a new segment takes tens of milliseconds. A background thread therefore
// makes the next segment as soon as less than a quarter of the memory is free,
// unless the segment would use most of the remaining budget. A request that
// finds no room makes a segment itself, or waits for a segment that another
// thread is making. Requests that find room do not wait.
//
// Returns a segment to the system after it has been empty for one to two times
// `idle_time`, if a quarter of the other segments' memory is free. If the
// system has no memory, tries again only after a second. If there are no huge
// pages of the wanted kind, uses ordinary pages, and logs the reason once.
// Thread-safe.
//
// In a forked child, the parent's leases stay readable, and the child's writes
// are visible only to the child (private_in_child.h). The child cannot allocate
// from the arena. The child takes no lock, because the lock may be held by a
// thread that does not exist in the child.
class Arena : public std::enable_shared_from_this<Arena> {
 public:
  // Returns 1 GiB, but at most a quarter of the machine's memory or of the
  // control group's limit.
  static uint64_t DefaultBudget();
  // The time for which empty segments are kept, for traffic that comes and
  // goes.
  static constexpr absl::Duration kIdleTime = absl::Seconds(5);

  // Makes an arena. All its segments together have at most `budget` bytes. With
  // an infinite idle time, keeps all segments. With a finite idle time,
  // returned segments that peers still map do not count against the budget.
  static std::shared_ptr<Arena> Create(
      uint64_t budget, HugePages huge_pages = HugePages::kTransparent,
      absl::Duration idle_time = absl::InfiniteDuration());

  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  // Raises the budget to `budget`. Ignores a lower budget.
  void RaiseBudget(uint64_t budget);
  uint64_t budget() const;

  // Leases `size` bytes. Returns RESOURCE_EXHAUSTED if the budget is used up or
  // the system has no memory, and in a forked child.
  absl::StatusOr<std::shared_ptr<ArenaLease>> Allocate(uint64_t size);
  // Returns the segment and the offset of [data, data + size) if the range is
  // in this arena. Returns nothing if the arena belongs to the parent of this
  // process. The caller keeps the lease of the bytes.
  absl::optional<Place> Find(const uint8_t* data, uint64_t size) const;

  // Tells `watcher` of returned segments, as long as `watcher` exists.
  void AddWatcher(std::weak_ptr<ArenaWatcher> watcher);
  // Makes all watchers free the memory that their peers have returned. May run
  // code of the application that owned the memory.
  void ReclaimLoans();

  // Return the number of bytes in leases, and in all segments.
  uint64_t used() const;
  uint64_t reserved() const;
  // Returns, in words, the number of bytes in reserved huge pages. Empty if
  // none were wanted, or if there are no segments yet.
  std::string Describe() const;

 private:
  friend class ArenaLease;

  using Segments = std::vector<std::unique_ptr<ArenaSegment>>;

  Arena(uint64_t budget, HugePages huge_pages, absl::Duration idle_time);

  std::shared_ptr<ArenaLease> LeaseLocked(uint64_t size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::shared_ptr<ArenaLease> LeaseInLocked(ArenaSegment* segment,
                                            uint64_t size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t NextStepLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Adds a segment with room for `size` bytes. Releases the lock while making
  // the segment. Call only if !is_growing_.
  absl::Status GrowLocked(uint64_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns true if less than a quarter of the segments' memory is free.
  bool IsScarceLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns true if the next segment would take at most half of the remaining
  // budget. The other half is for requests that are larger than a segment.
  bool MayPrepareLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Schedules PrepareAside() on another thread. PrepareAside() adds a segment,
  // unless enough memory is free when it runs.
  void PrepareLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PrepareAside();
  // Returns true in a forked child, where this object is a copy of the
  // parent's.
  bool IsForeign() const;
  void Free(const ArenaLease& lease);
  uint64_t UsedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t ReservedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Schedules GiveBackOnLoop() after idle_time_, unless it is scheduled
  // already.
  void LookSoonLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns to the system the segments that have been empty since the last
  // call.
  void GiveBackOnLoop();
  Segments TakeIdleLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<std::shared_ptr<ArenaWatcher>> LivingWatchersLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  metrics::Level limit_;
  metrics::Level used_;
  metrics::Level reserved_;
  const absl::Duration idle_time_;
  const uint32_t fork_count_;

  mutable base::Mutex mu_;
  uint64_t budget_ ABSL_GUARDED_BY(mu_);
  bool will_look_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::weak_ptr<ArenaWatcher>> watchers_ ABSL_GUARDED_BY(mu_);
  // The number of watchers that still existed at the last count.
  size_t living_watchers_ ABSL_GUARDED_BY(mu_) = 1;
  // True while a thread makes a segment. Only this thread uses maker_.
  bool is_growing_ ABSL_GUARDED_BY(mu_) = false;
  std::condition_variable_any has_grown_;
  ArenaSegmentMaker maker_;
  // True if PrepareAside() is scheduled.
  bool is_preparing_ ABSL_GUARDED_BY(mu_) = false;
  Segments segments_ ABSL_GUARDED_BY(mu_);
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_ARENA_H_
