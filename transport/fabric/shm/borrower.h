// Reads memory that a peer lends.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_BORROWER_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_BORROWER_H_

#include <cstdint>
#include <map>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/segment.h"

namespace penstock {
namespace fabric {
namespace shm {

// The peer's segments as one connection knows them. They stay mapped as long as
// this lives.
class Borrower {
 public:
  // `socket`, over which segments come, and `own`, where loans are given back,
  // outlive this.
  Borrower(int socket, ControlPage* own) : socket_(socket), own_(own) {}

  // Where the region's bytes are. An error if the region is not within what the
  // peer has passed. One thread at a time.
  absl::StatusOr<absl::Span<const uint8_t>> Find(const RemoteRegion& region);

  // The region with this key is read no more. Any thread; no system calls.
  void GiveBack(uint64_t key);

 private:
  // Takes in the segments that wait in the socket, up to the wanted one.
  absl::Status ReceiveSegments(uint32_t wanted);
  absl::Status AddSegment();

  const int socket_;
  ControlPage* const own_;
  std::map<uint32_t, PeerSegment> segments_;

  std::mutex release_mu_;  // one writer of own_'s releases at a time
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_BORROWER_H_
