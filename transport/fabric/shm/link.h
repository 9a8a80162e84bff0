// The shared state of two connected processes.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_LINK_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_LINK_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/base/mutex.h"
#include "transport/fabric/shm/borrowed_device.h"
#include "transport/fabric/shm/borrower.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/device_lender.h"
#include "transport/fabric/shm/doorbell.h"
#include "transport/fabric/shm/lender.h"
#include "transport/fabric/shm/peer_socket.h"
#include "transport/fabric/shm/segment.h"
#include "transport/fabric/shm/sharing.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace shm {

class ReadingShare;

// Owns the socket, both control segments, and the loans. Outlives its endpoint
// while the application holds loaded bytes, or while the peer reads this side's
// memory. Ends, on each side, step by step:
//
//   event                              what this side does
//   the endpoint is destroyed          sets `closed` in its page; gives the
//                                      event loop a reference to itself while
//                                      loans are out; closes the peer's
//                                      devices' memory, on another thread
//   the last ReadingShare is gone      shuts its half of the socket down:
//                                      "I read nothing of yours any more"
//   the peer's half is shut down,      ends all loans, leaves the event loop
//   or the peer is dead
//   all loans are back, the peer has   leaves the event loop
//   closed this side's devices'
//   memory, endpoint gone
//   the peer is dead, endpoint gone    unmaps the peer's segments, except for
//                                      ranges that are still read (LentSegment)
//   the last reference is gone         closes the socket and unmaps everything,
//                                      on another thread (aside.h), because
//                                      this may take long
//
// If this side still reads memory of the peer when the link leaves the event
// loop, the link continues to watch for the peer's death. The watch ends with
// the last ReadingShare. A living peer does not close its socket before.
//
// `closed` and the shut-down are separate signals, because memory may be read
// long after its path was closed. Neither side may wait until the other closes
// its socket. Thread-safe. Touches nothing in a forked child.
class Link : public ArenaWatcher,
             public BorrowedDevice::Peer,
             public std::enable_shared_from_this<Link> {
 public:
  // Takes ownership of `socket`, a connected, non-blocking SOCK_SEQPACKET
  // socket.
  static absl::StatusOr<std::shared_ptr<Link>> Create(PeerSocket socket,
                                                      Segment control,
                                                      PeerSegment peer_control,
                                                      Sharing sharing);
  ~Link() override;

  ControlPage* own_page() const { return PageOf(control_); }
  const ControlPage* peer_page() const { return PageOf(peer_control_); }
  uint64_t peer_ring_bytes() const {
    return peer_control_.size() - kRingOffset;
  }
  const Sharing& sharing() const { return sharing_; }
  DeviceLender* device_lender() { return &device_lender_; }
  Lender* lender() { return &lender_; }
  Borrower* borrower() { return &borrower_; }
  Doorbell* doorbell() { return &doorbell_; }
  // Returns true once the peer has closed its end or the socket has hung up.
  // Bytes that the peer sent earlier can still be read.
  bool PeerIsGone() const;
  // Returns true once the peer has closed its end, and writes nothing more.
  // Returns false if the peer has died, or if another process has shut down the
  // peer's socket.
  bool PeerHasClosed() const;
  // Tells the peer that this side will receive no later packet. Check the ring
  // once more afterwards. Each packet is then either found by this check, or
  // its sender finds that this side is gone.
  void StopReceiving();
  // Returns true in a forked child, where this object is a copy of the
  // parent's.
  bool IsForeign() const;

  // Starts to check periodically for returned loans, and for idle device memory
  // to take back. Returned memory is then released soon even if no thread polls
  // the endpoint.
  void WatchLoans();

  // Returns the first ReadingShare of the memory that the peer lends. Call only
  // once.
  std::shared_ptr<ReadingShare> StartReading();
  // Begins the end of the link, because the endpoint was destroyed.
  void Close();

  void OnGivenBack(uint32_t segment_id) override;
  void ReclaimLoans() override;
  std::shared_ptr<const void> KeepReading() override;
  void OnClosed(uint32_t id) override;

 private:
  friend class ReadingShare;

  Link(PeerSocket socket, Segment control, PeerSegment peer_control,
       Sharing sharing, progress::EventLoop* loop);

  // Deletes `link` after its last reference, on another thread, because
  // unmapping the peer's memory may free many pages, which takes long.
  static void End(Link* link);

  // Watches the socket, and gives the event loop a reference to this object.
  absl::Status Watch(uint32_t events);
  void OnSocket(uint32_t events);
  void TakeIn();
  void OnHangUp(bool is_dead);
  // Unmaps the peer's segments, if the peer is dead and no more reads will
  // begin.
  void MayLetGo();
  // Tells the peer that this side no longer reads the peer's memory.
  void EndReading();
  // Returns true while this side may still read memory of the peer.
  bool IsReading() const;
  // Returns true while memory is lent, or may be open at the peer.
  bool HasLoans() const {
    return lender_.count() > 0 || device_lender_.count() > 0;
  }
  // Checks periodically for returned loans and idle device memory, until
  // neither is left.
  void LookLater(absl::Duration period);
  void LookForReturns(absl::Duration period);
  // Checks periodically until all loans have been returned. Then leaves the
  // event loop.
  void Linger();
  bool LeaveIfAllIsBack();
  // Drops the event loop's reference, or keeps it until the peer's death.
  void Leave();

  const PeerSocket socket_;
  const Segment control_;
  const PeerSegment peer_control_;
  const Sharing sharing_;
  progress::EventLoop* const loop_;
  const uint32_t fork_count_;
  std::atomic<bool> hung_up_{false};
  std::atomic<bool> peer_is_dead_{false};
  std::atomic<bool> is_closed_{false};
  std::atomic<bool> has_left_{false};
  std::atomic<progress::EventLoop::Id> watch_{0};
  std::atomic<bool> has_lent_{false};  // since the last look
  std::atomic<bool> looks_{false};
  Doorbell doorbell_;
  DeviceLender device_lender_;
  Lender lender_;
  Borrower borrower_;

  mutable base::Mutex mu_;
  std::weak_ptr<ReadingShare> reading_ ABSL_GUARDED_BY(mu_);
};

// The right to read memory that the peer lends. The endpoint holds one share.
// Each range of loaded bytes holds another, and so does each device allocation
// that is being closed. When the last share ends, this side tells the peer that
// its loans are over.
class ReadingShare {
 public:
  explicit ReadingShare(std::shared_ptr<Link> link) : link_(std::move(link)) {}
  ReadingShare(const ReadingShare&) = delete;
  ReadingShare& operator=(const ReadingShare&) = delete;
  ~ReadingShare() { link_->EndReading(); }

  Link* link() const { return link_.get(); }

 private:
  const std::shared_ptr<Link> link_;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_LINK_H_
