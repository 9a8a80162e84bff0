// Reads memory that a peer lends.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_BORROWER_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_BORROWER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/lent_segment.h"

namespace penstock {
namespace fabric {
namespace shm {

// What a peer lends at a time, as one connection knows it: segments, and their
// bytes in all. An honest peer's arena has some ten, and no more than 1 GiB.
constexpr size_t kMaxPeerSegments = 64;
constexpr uint64_t kMaxPeerBytes = uint64_t{4} << 30;

// The peer's segments as one connection knows them. They stay mapped until the
// peer takes them back or this ends, and as long as anything of them is in use.
// Thread-safe.
class Borrower {
 public:
  // Of a region, and what keeps them mapped.
  struct Borrowed {
    absl::Span<const uint8_t> bytes;
    std::shared_ptr<const LentSegment> segment;
  };

  // `socket`, over which segments come, and `own`, where loans are given back,
  // outlive this.
  Borrower(int socket, ControlPage* own) : socket_(socket), own_(own) {}

  // Where the region's bytes are. An error if the region is not within what the
  // peer lends.
  absl::StatusOr<Borrowed> Find(const RemoteRegion& region);

  // Takes in what waits in the socket, a bounded amount. False: nothing more
  // can be taken from there without being asked for.
  bool TakeIn();

  // The region with this key is read no more. No system calls.
  void GiveBack(uint64_t key);

 private:
  // Takes in what waits in the socket, up to the wanted segment.
  absl::Status ReceiveLocked(uint32_t wanted);
  // NOT_FOUND: there is nothing.
  absl::Status ReceiveOneLocked();
  absl::Status AddLocked(uint32_t id, uint64_t size, progress::ForeignFd fd);

  const int socket_;
  ControlPage* const own_;

  std::mutex mu_;  // guards these, and who takes from the socket
  std::map<uint32_t, std::shared_ptr<LentSegment>> segments_;
  uint64_t bytes_ = 0;
  absl::Status refused_;  // the last of what TakeIn() could not

  std::mutex release_mu_;  // one writer of own_'s releases at a time
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_BORROWER_H_
