// Shared memory for payloads that peers read in place.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_ARENA_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_ARENA_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "transport/fabric/shm/huge_pages.h"
#include "transport/fabric/shm/segment.h"
#include "transport/memory/range_allocator.h"

namespace penstock {
namespace fabric {
namespace shm {

class Arena;

// Where memory of an arena lies, for a peer.
struct Place {
  uint32_t segment_id = 0;
  int segment_fd = -1;  // the arena's
  uint64_t segment_size = 0;
  uint64_t offset = 0;
};

// A part of an arena. Given back, on any thread, when it is destroyed.
class Lease {
 public:
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease();

  uint8_t* data() const;
  uint64_t size() const { return size_; }
  Place place() const;

 private:
  friend class Arena;
  struct Room;

  Lease(std::shared_ptr<Arena> arena, Room* room, uint64_t offset,
        uint64_t size);

  const std::shared_ptr<Arena> arena_;
  Room* const room_;
  const uint64_t offset_;
  const uint64_t size_;
};

// Told when an arena gives a segment back to the system, of which no part is
// used: whoever has it mapped is to let go of it, or its memory stays. Called
// on the event loop's thread, without locks.
class ArenaWatcher {
 public:
  virtual ~ArenaWatcher() = default;
  virtual void OnGivenBack(uint32_t segment_id) = 0;
};

// Memory that any peer of one trust domain may read: a peer that has got a
// segment sees all of it. A domain is the uid that peers run as (domains.h).
//
// Grows by segments. Keeps the first for good; another one goes back when
// nothing has been in it for `idle_time`, or up to twice that. The pages of a
// segment are cleared when it is made, under the lock: rare, but
// tens of milliseconds for a large one. Where the system has no memory to grow
// by, it does not ask again for a second. Where it has no huge pages of the
// kind that was asked for, segments have ordinary ones; the log says why there
// are none reserved, once. Thread-safe.
class Arena : public std::enable_shared_from_this<Arena> {
 public:
  // 1 GiB, but no more than a quarter of the machine's memory or of the
  // control group's limit.
  static uint64_t DefaultBudget();
  // Traffic that comes and goes within this finds its segments as it left them.
  static constexpr absl::Duration kIdleTime = absl::Seconds(5);

  // At most `budget` bytes of segments in all. Without an idle time all
  // segments are kept: what peers keep of those that are given back is no part
  // of the budget.
  static std::shared_ptr<Arena> Create(
      uint64_t budget, HugePages huge_pages = HugePages::kTransparent,
      absl::Duration idle_time = absl::InfiniteDuration());

  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  // RESOURCE_EXHAUSTED where the budget or the memory has no room.
  absl::StatusOr<std::shared_ptr<Lease>> Allocate(uint64_t size);
  // Where `size` bytes at `data` lie, if that is in this arena; whoever has
  // them has a lease of them.
  absl::optional<Place> Find(const uint8_t* data, uint64_t size) const;

  // From now on, until it is gone.
  void AddWatcher(std::weak_ptr<ArenaWatcher> watcher);

  // Bytes in leases, and bytes in segments.
  uint64_t used() const;
  uint64_t reserved() const;
  // Which of them lie in reserved huge pages, for people; empty where none were
  // asked for, or there are no segments yet.
  std::string Describe() const;

 private:
  friend class Lease;

  using Rooms = std::vector<std::unique_ptr<Lease::Room>>;

  Arena(uint64_t budget, HugePages huge_pages, absl::Duration idle_time);

  std::shared_ptr<Lease> LeaseInLocked(Lease::Room* room, uint64_t size);
  absl::StatusOr<Lease::Room*> GrowLocked(uint64_t size);
  absl::StatusOr<std::unique_ptr<Lease::Room>> NewRoomLocked(uint64_t size);
  absl::StatusOr<std::unique_ptr<Lease::Room>> CreateRoomLocked(uint64_t size);
  void SayWhyNotReservedLocked(const absl::Status& cause);
  void Free(const Lease& lease);
  uint64_t ReservedLocked() const;
  // Gives idle rooms back, now or soon.
  void LookSoonLocked();
  void GiveBackOnLoop();
  Rooms TakeIdleLocked();
  std::vector<std::shared_ptr<ArenaWatcher>> LivingWatchersLocked();

  const uint64_t budget_;
  const HugePages huge_pages_;
  const absl::Duration idle_time_;

  mutable std::mutex mu_;  // guards the rest
  bool will_look_ = false;
  std::vector<std::weak_ptr<ArenaWatcher>> watchers_;
  size_t living_watchers_ = 1;  // of these, when last looked at
  bool said_why_not_ = false;
  absl::Status no_memory_;  // of the last growth, where it failed
  absl::Time next_growth_;  // SteadyNow(); until then it is the answer
  Rooms rooms_;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_ARENA_H_
