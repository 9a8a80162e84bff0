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

// The smallest piece that is lent without a copy, in bytes. For a smaller
// piece, a copy costs about as much as a part, its lookup and its slice at the
// receiver.
constexpr size_t kMinPartBytes = 4 * 1024;

// Tracks the loans of one connection. A loan is memory that the peer reads, in
// this process's arena and on its devices. Reuses the memory of a loan only
// after the peer has returned the loan, or can no longer read any memory of
// this side. Ending a loan may run code of the application that owns the lent
// memory, but never under this class's lock. Thread-safe.
class Lender {
 public:
  // Passes segments over `socket`, passes allocations by `devices`, and reads
  // returned loans in `peer`. All arguments must outlive this object.
  Lender(std::shared_ptr<Arena> arena, int socket, const ControlPage* peer,
         DeviceLender* devices);

  // Lends `payload`, all under one loan. Lends pieces in the arena, and pieces
  // that `devices` lends, without a copy. Copies the other pieces to the arena.
  // The region has at most `max_parts` parts. RESOURCE_EXHAUSTED is a normal
  // answer. Returns UNAVAILABLE after EndAll().
  absl::StatusOr<Exposure> Expose(const memory::Payload& payload,
                                  size_t max_parts);

  // Ends the loan with this key. Call when the peer's session has stopped
  // reading the loan, and only if the two sides copy. (A peer that uses lent
  // memory without a copy ends the loan itself.)
  void End(uint64_t key);
  // Ends the loans that the peer has returned. Ignores numbers that are not the
  // peer's loans. Returns DATA_LOSS if the peer has returned more loans than it
  // was lent.
  absl::Status Reclaim();
  // Tells the peer to unmap a segment that the arena has returned to the
  // system. No part of the segment may be lent.
  void TakeBack(uint32_t segment_id);
  // Ends all loans and lends nothing more. Call when the peer has stopped
  // reading or is dead.
  void EndAll();
  // Returns the number of open loans. Safe without the lock.
  size_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  // A reference that keeps lent memory from being reused.
  using Owner = std::shared_ptr<const void>;

  // Memory that is lent as one part.
  struct Part {
    Place place;
    memory::Bytes bytes;
    // A reference that keeps the allocation passed to the peer. Null for memory
    // of the arena.
    std::shared_ptr<const void> device;
  };
  using Parts = absl::InlinedVector<Part, 1>;
  // The location of each piece of a payload at the peer, or nothing for a piece
  // that the peer cannot reach.
  using Located = absl::InlinedVector<absl::optional<Part>, 1>;

  // The memory of a loan that has several parts, or is on a device.
  struct LentParts;

  // Returns the location of the piece at the peer, or nothing if the peer
  // cannot reach the piece.
  absl::optional<Part> Locate(const memory::Bytes& piece);

  absl::StatusOr<Parts> MakeParts(const memory::Payload& payload,
                                  size_t max_parts);
  absl::StatusOr<Parts> Gather(const memory::Payload& payload,
                               const std::vector<Stretch>& stretches,
                               Located located);
  // Returns an object that owns the memory of the parts while they are lent.
  static Owner OwnerOf(const Parts& parts);
  absl::StatusOr<Exposure> Lend(Parts parts);
  absl::StatusOr<uint32_t> AddLocked(const Parts& parts, Owner owner)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Forgets a loan. Returns the loan's owner, which the caller releases without
  // the lock. Returns null if there is no such loan.
  Owner TakeLocked(uint32_t loan) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Passes the segment of `place`, unless the peer already has the segment.
  absl::Status SendSegmentLocked(const Place& place)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends the messages of to_take_back_, as far as the socket has room.
  void SendTakeBacksLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::shared_ptr<Arena> arena_;
  const int socket_;
  const ControlPage* const peer_;
  DeviceLender* const devices_;
  std::atomic<size_t> count_{0};

  base::Mutex mu_;  // taken before the arena's
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  uint32_t next_loan_ ABSL_GUARDED_BY(mu_) = 1;
  // The number of processed entries of the peer's releases.
  uint64_t reclaimed_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint32_t, Owner> loans_ ABSL_GUARDED_BY(mu_);
  std::set<uint32_t> sent_segments_ ABSL_GUARDED_BY(mu_);
  // Returned segments that the peer has not been told about yet.
  std::vector<uint32_t> to_take_back_ ABSL_GUARDED_BY(mu_);
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_LENDER_H_
