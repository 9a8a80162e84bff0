// Lends a peer memory to read.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_LENDER_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_LENDER_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "transport/base/mutex.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/gather.h"
#include "transport/fabric/shm/arena.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/device_lender.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace shm {

// Below this a piece is copied: the part, its lookup and its slice at the
// receiver cost about as much.
constexpr size_t kMinPartBytes = 4 * 1024;

// Keeps the loans of one connection. A loan is memory that the peer reads, in
// this process's arena and on its devices: it is not used again until the peer
// gives it back, or can read nothing of this side's any more. Ending a loan may
// run the application's code, which owns what was lent; that never happens
// under this class's lock. Thread-safe.
class Lender {
 public:
  // Passes segments over `socket`, has `devices` pass allocations, and finds in
  // `peer` the loans that the peer gives back. All must outlive this.
  Lender(std::shared_ptr<Arena> arena, int socket, const ControlPage* peer,
         DeviceLender* devices);

  // Lends `payload`, all under one loan: what lies in the arena, or where
  // `devices` lends it, where it lies, and of the rest a copy in the arena. The
  // region has at most `max_parts` parts. Returns RESOURCE_EXHAUSTED in the
  // normal course of things, and UNAVAILABLE after EndAll().
  absl::StatusOr<Exposure> Expose(const memory::Payload& payload,
                                  size_t max_parts);

  // Ends the loan with this key, since the peer's session reads it no more.
  // Call it only if the two sides copy: a peer that loads ends its loans
  // itself.
  void End(uint64_t key);
  // Ends the loans that the peer has given back. Ignores numbers that are none
  // of its loans. Returns DATA_LOSS if the peer claims to have given back more
  // than it can have had.
  absl::Status Reclaim();
  // Tells the peer to let go of a segment, since the arena has given it back to
  // the system. Nothing of it is lent any more.
  void TakeBack(uint32_t segment_id);
  // Ends all loans, now and for good, since the peer reads nothing any more: it
  // has said so, or is dead.
  void EndAll();
  // Returns how many loans are out. Safe without the lock.
  size_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  // Keeps what is lent from being used again.
  using Owner = std::shared_ptr<const void>;

  // What is lent as one part, and where it lies.
  struct Part {
    Place place;
    memory::Bytes bytes;
    // Keeps the allocation passed; null: it is the arena's.
    std::shared_ptr<const void> device;
  };
  using Parts = absl::InlinedVector<Part, 1>;
  // Each piece of a payload, where the peer can reach it.
  using Located = absl::InlinedVector<absl::optional<Part>, 1>;

  // What keeps a loan of several parts, or on a device.
  struct LentParts;

  // Returns where the peer reaches the piece, if it can.
  absl::optional<Part> Locate(const memory::Bytes& piece);

  absl::StatusOr<Parts> MakeParts(const memory::Payload& payload,
                                  size_t max_parts);
  absl::StatusOr<Parts> Gather(const memory::Payload& payload,
                               const std::vector<Stretch>& stretches,
                               Located located);
  // Returns what keeps the parts while they are lent.
  static Owner OwnerOf(const Parts& parts);
  absl::StatusOr<Exposure> Lend(Parts parts);
  absl::StatusOr<uint32_t> AddLocked(const Parts& parts, Owner owner)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Forgets a loan, and returns its owner for the caller to let go of without
  // the lock. Returns null if there is no such loan.
  Owner TakeLocked(uint32_t loan) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Passes the segment of `place`, unless the peer has it.
  absl::Status SendSegmentLocked(const Place& place)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends what is in to_take_back_, as far as the socket has room.
  void SendTakeBacksLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::shared_ptr<Arena> arena_;
  const int socket_;
  const ControlPage* const peer_;
  DeviceLender* const devices_;
  std::atomic<size_t> count_{0};

  base::Mutex mu_;  // taken before the arena's
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  uint32_t next_loan_ ABSL_GUARDED_BY(mu_) = 1;
  // Entries that were read of the peer's releases.
  uint64_t reclaimed_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint32_t, Owner> loans_ ABSL_GUARDED_BY(mu_);
  std::set<uint32_t> sent_segments_ ABSL_GUARDED_BY(mu_);
  // Of which the peer is still to be told.
  std::vector<uint32_t> to_take_back_ ABSL_GUARDED_BY(mu_);
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_LENDER_H_
