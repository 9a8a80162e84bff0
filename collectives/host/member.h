// The memory through which the ranks of a host exchange data, and the means to
// notice a rank's death.

#ifndef PENSTOCK_COLLECTIVES_HOST_MEMBER_H_
#define PENSTOCK_COLLECTIVES_HOST_MEMBER_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/host/control.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/shm/segment.h"
#include "transport/progress/event_loop.h"
#include "transport/progress/foreign_fd.h"

namespace penstock::collectives {

// This rank's segment: a Control, two slots, a pool and rings. Only this
// process can write to the segment. Each peer holds one end of a pipe, by which
// the peer notices the end of this process.
class OwnMember {
 public:
  // The period of the heartbeat.
  static constexpr absl::Duration kBeat = absl::Milliseconds(100);

  // Returns RESOURCE_EXHAUSTED if there is no memory or no descriptor.
  static absl::StatusOr<std::unique_ptr<OwnMember>> Create(
      const SegmentSizes& sizes);
  OwnMember(const OwnMember&) = delete;
  OwnMember& operator=(const OwnMember&) = delete;
  // Tells the peers that this rank has left. In a forked child, tells them
  // nothing.
  ~OwnMember();

  Control& control() { return *shared_->control(); }
  uint8_t* slot(uint32_t number) {
    return shared_->segment.data() + kControlBytes +
           number % 2 * sizes_.slot_bytes;
  }
  uint8_t* pool() {
    return shared_->segment.data() + kControlBytes + 2 * sizes_.slot_bytes;
  }
  // Return the words and the ring that this rank writes for `peer`.
  MailWords& mail(int peer) {
    return *reinterpret_cast<MailWords*>(shared_->segment.data() +
                                         sizes_.mail_at(peer));
  }
  uint8_t* ring(int peer) {
    return shared_->segment.data() + sizes_.mail_at(peer) + kMailWordsBytes;
  }
  const SegmentSizes& sizes() const { return sizes_; }
  // Returns an object that keeps the segment mapped.
  std::shared_ptr<const void> memory() const { return shared_; }

  // Return the descriptors to pass to peers.
  int memory_fd() const { return shared_->segment.fd(); }
  int life_fd() const { return peers_end_.get(); }

 private:
  // The state that the heartbeat uses. May outlive this object.
  struct Shared {
    explicit Shared(fabric::shm::Segment made) : segment(std::move(made)) {}
    Control* control() { return reinterpret_cast<Control*>(segment.data()); }
    fabric::shm::Segment segment;
  };

  OwnMember(fabric::shm::Segment segment, const SegmentSizes& sizes,
            base::UniqueFd own_end, base::UniqueFd peers_end);
  // Records the calling thread as the thread of the heartbeat.
  static void NameThread(Control* control);
  static void Beat(progress::EventLoop* loop,
                   const std::weak_ptr<Shared>& shared);

  const uint32_t fork_count_;
  const SegmentSizes sizes_;
  std::shared_ptr<Shared> shared_;
  const base::UniqueFd own_end_;  // closed when this process ends
  const base::UniqueFd peers_end_;
};

// A peer's segment. The peer may change all bytes at any time.
class PeerMember {
 public:
  // Returns an error unless `memory` is sealed memory of the right size.
  static absl::StatusOr<std::unique_ptr<PeerMember>> Map(
      progress::ForeignFd memory, progress::ForeignFd life,
      const SegmentSizes& sizes);

  const Control& control() const {
    return *reinterpret_cast<const Control*>(segment_.data());
  }
  const uint8_t* slot(uint32_t number) const {
    return segment_.data() + kControlBytes + number % 2 * sizes_.slot_bytes;
  }
  const uint8_t* pool() const {
    return segment_.data() + kControlBytes + 2 * sizes_.slot_bytes;
  }
  // Return the words and the ring that this peer writes for `rank`.
  const MailWords& mail(int rank) const {
    return *reinterpret_cast<const MailWords*>(segment_.data() +
                                               sizes_.mail_at(rank));
  }
  const uint8_t* ring(int rank) const {
    return segment_.data() + sizes_.mail_at(rank) + kMailWordsBytes;
  }
  // Returns a descriptor that becomes readable (POLLHUP) when the peer's
  // process has ended.
  int life_fd() const { return life_.get(); }

 private:
  PeerMember(fabric::shm::PeerSegment segment, progress::ForeignFd life,
             const SegmentSizes& sizes)
      : sizes_(sizes), segment_(std::move(segment)), life_(std::move(life)) {}

  const SegmentSizes sizes_;
  const fabric::shm::PeerSegment segment_;
  const progress::ForeignFd life_;
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HOST_MEMBER_H_
