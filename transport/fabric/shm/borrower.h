// Reads memory that a peer lends.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_BORROWER_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_BORROWER_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/base/mutex.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/lent_segment.h"

namespace penstock {
namespace fabric {
namespace shm {

// The most that a peer may lend over one connection at a time: segments, and
// bytes of them in all. An honest peer's arena has some ten, of 1 GiB at most.
constexpr size_t kMaxPeerSegments = 64;
constexpr uint64_t kMaxPeerBytes = uint64_t{4} << 30;

// Maps the segments that the peer passes over one connection. Keeps a segment
// mapped until the peer takes it back or this ends, and for longer while a
// range of it is in use. Thread-safe.
class Borrower {
 public:
  // The bytes of a part, and the share that keeps them mapped.
  struct Borrowed {
    absl::Span<const uint8_t> bytes;
    std::shared_ptr<const LentSegment> segment;
  };

  // Receives segments over `socket`, and gives loans back in `own`. Both must
  // outlive this.
  Borrower(int socket, ControlPage* own) : socket_(socket), own_(own) {}

  // Returns where the bytes of `part` lie. Takes in segments that wait in the
  // socket, if the part's is not known yet. Returns an error if the peer does
  // not lend all of the part, or has not allocated it.
  absl::StatusOr<Borrowed> Find(const RemotePart& part);

  // Takes in some of what waits in the socket: a bounded amount. Returns false
  // if the next message cannot be taken in: leave the socket then to Find(),
  // which reports why.
  bool TakeIn();

  // Ends the loan with this key: this side reads it no more. Makes no system
  // call.
  void GiveBack(uint64_t key);

 private:
  // Takes in what waits in the socket, up to the wanted segment.
  absl::Status ReceiveLocked(uint32_t wanted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes one message in. Returns NOT_FOUND if there is none.
  absl::Status ReceiveOneLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AddLocked(uint32_t id, uint64_t size, progress::ForeignFd fd)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int socket_;
  ControlPage* const own_;

  base::Mutex mu_;  // held too by the one who receives from the socket
  std::map<uint32_t, std::shared_ptr<LentSegment>> segments_
      ABSL_GUARDED_BY(mu_);
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // Why TakeIn() last returned false.
  absl::Status refused_ ABSL_GUARDED_BY(mu_);

  base::Mutex release_mu_;  // held by the one who writes own_'s releases
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_BORROWER_H_
