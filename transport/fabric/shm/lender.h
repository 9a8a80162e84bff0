// Lends a peer memory to read.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_LENDER_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_LENDER_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/shm/arena.h"
#include "transport/fabric/shm/control.h"

namespace penstock {
namespace fabric {
namespace shm {

// The loans of one connection. A loan keeps its memory from being used again
// until the peer gives it back, or will read no more at all; nothing that this
// side does ends it earlier. What was lent may be the application's, whose code
// runs when it ends: never under this class's lock. Thread-safe.
class Lender {
 public:
  // `socket` and `peer`, where the peer gives loans back, outlive this.
  Lender(std::shared_ptr<Arena> arena, int socket, const ControlPage* peer);

  // Lends `payload` where it lies, if that is in one piece in the arena, or
  // else a copy. RESOURCE_EXHAUSTED is a normal answer; UNAVAILABLE after
  // EndAll().
  absl::StatusOr<Exposure> Expose(const memory::Payload& payload);

  // The peer's session has said that it reads this loan no more. Only where it
  // cannot have loaded it.
  void End(uint64_t key);
  // Ends the loans that the peer has given back. DATA_LOSS: it claims more than
  // it can have had; ids that are none of its loans are ignored.
  absl::Status Reclaim();
  // The arena has given a segment back: so the peer is to let go of it, too.
  // Called once no part of it is used, and it is not used again.
  void TakeBack(uint32_t segment_id);
  // The peer reads nothing any more: it said so, or is dead.
  void EndAll();
  // Loans that are out.
  size_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  // Keeps what is lent.
  using Owner = std::shared_ptr<const void>;

  absl::StatusOr<Exposure> Lend(const Place& place, memory::Bytes bytes);
  absl::StatusOr<uint32_t> AddLocked(const Place& place, Owner owner);
  // The owner of a loan that ends. Null: there is no such loan.
  Owner TakeLocked(uint32_t loan);
  absl::Status SendSegmentLocked(const Place& place);
  // As many as the socket has room for.
  void SendTakeBacksLocked();

  const std::shared_ptr<Arena> arena_;
  const int socket_;
  const ControlPage* const peer_;
  std::atomic<size_t> count_{0};

  std::mutex mu_;  // guards all below; before the arena's
  bool ended_ = false;
  uint32_t next_loan_ = 1;
  uint64_t reclaimed_ = 0;  // entries read of the peer's releases
  std::map<uint32_t, Owner> loans_;
  std::set<uint32_t> sent_segments_;
  std::vector<uint32_t> to_take_back_;  // the peer has not been told
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_LENDER_H_
