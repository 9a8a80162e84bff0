// What two connected processes share, for as long as either needs it.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_LINK_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_LINK_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/fabric/shm/borrower.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/lender.h"
#include "transport/fabric/shm/peer_socket.h"
#include "transport/fabric/shm/segment.h"
#include "transport/fabric/shm/sharing.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace shm {

class ReadingShare;

// The socket, both control segments, the loans. Outlives its endpoint where the
// application still holds loaded bytes, or the peer still reads this side's
// memory. It ends, on each side, step by step:
//
//   event                              what this side does
//   the endpoint is destroyed          sets `closed` in its page; keeps a share
//                                      of itself in the event loop's care while
//                                      loans are out
//   the last ReadingShare is gone      shuts its half of the socket down: "I
//                                      read nothing of yours any more"
//   the peer's half is shut down,      ends all loans, leaves the event loop
//   or the peer is dead
//   all loans are back, endpoint gone  leaves the event loop
//   nobody has a share                 closes the socket, unmaps all: aside,
//                                      since that may take long (aside.h)
//
// The two signals differ because a closed path may have readers for long after,
// and because neither side may wait for the other's socket to close.
// Thread-safe. In a forked child it touches nothing.
class Link : public ArenaWatcher, public std::enable_shared_from_this<Link> {
 public:
  // Over a connected, non-blocking UNIX socket of packets.
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
  Lender* lender() { return &lender_; }
  Borrower* borrower() { return &borrower_; }
  // The peer will write nothing more; what it wrote before is there.
  bool PeerIsGone() const;
  // This is a copy in a forked child.
  bool IsForeign() const;

  // The endpoint is gone.
  void Close();

  void OnGivenBack(uint32_t segment_id) override;

 private:
  friend class ReadingShare;

  Link(PeerSocket socket, Segment control, PeerSegment peer_control,
       Sharing sharing, progress::EventLoop* loop);

  // The last share is gone. Where the peer has let go of its memory, that is
  // freed with its last mapping, which takes as long as there are pages of it.
  static void End(Link* link);

  absl::Status Watch(uint32_t events);
  void OnSocket(uint32_t events);
  void OnHangUp();
  void EndReading();
  void Linger();
  void Leave();

  const PeerSocket socket_;
  const Segment control_;
  const PeerSegment peer_control_;
  const Sharing sharing_;
  progress::EventLoop* const loop_;
  const uint32_t fork_count_;
  std::atomic<bool> hung_up_{false};
  std::atomic<progress::EventLoop::Id> watch_{0};
  Lender lender_;
  Borrower borrower_;
};

// A share in reading what the peer lends: the endpoint has one, and each range
// of loaded bytes.
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
