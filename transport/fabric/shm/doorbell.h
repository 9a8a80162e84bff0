// The eventfds by which the two sides of a connection wake each other.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_DOORBELL_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_DOORBELL_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "transport/base/unique_fd.h"
#include "transport/progress/foreign_fd.h"

namespace penstock {
namespace fabric {
namespace shm {

// The doorbells of one side: its own eventfd, on which this side sleeps, and
// the peer's eventfd, by which this side wakes the peer. Either may be missing,
// for example if few descriptors are left. The lifeline's doorbell is used
// then.
//
// A ring writes 0 to the eventfd. The counter is 1 from the beginning and does
// not change. The descriptor is therefore always readable, and each ring causes
// an event for a thread that waits for edges (EPOLLET). Nobody reads the
// counter, which saves a system call per ring, and no number of rings fills it.
//
// A hostile peer may empty or fill the counter, or make the descriptor
// blocking. A peer that empties its own counter only misses rings. A write of 0
// to a full counter does not block, unless the counter is 2^64 - 1. No write
// reaches that value, but the kernel can set it, for example at the end of an
// AIO request that names the eventfd. Therefore only processes of the same user
// pass each other doorbells; such processes could stop each other anyway.
//
// Thread-safe.
class Doorbell {
 public:
  Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;
  // Closes the descriptors. Exception: a forked child leaves this side's
  // descriptor open, because gRPC may have closed it there, and its number may
  // belong to another descriptor.
  ~Doorbell();

  // Makes this side's eventfd, and passes it to the peer over `socket`. Does
  // nothing if descriptors are scarce or the socket is full. Call at most once,
  // before other threads use this object.
  void Offer(int socket);
  // Returns the descriptor on which to wait for edges. Returns -1 if the peer
  // has not got the descriptor.
  int fd() const { return own_.get(); }

  // Wakes the threads that wait on fd(). Does not block.
  void WakeOwner() const;

  // Accepts the peer's eventfd, which ReceiveSetup() has checked. If this side
  // has no eventfd and descriptors are scarce, closes the peer's eventfd: one
  // doorbell is useless without the other. Returns INVALID_ARGUMENT for a
  // second eventfd.
  absl::Status TakePeers(progress::ForeignFd fd);
  // Wakes the peer. Returns false if the peer has passed no doorbell. Does not
  // block.
  bool Ring() const;

 private:
  const uint32_t fork_count_;
  base::UniqueFd own_;
  // Written once, before peers_number_.
  progress::ForeignFd peers_;
  bool has_taken_ = false;  // used by the thread that receives
  std::atomic<int> peers_number_{-1};
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_DOORBELL_H_
