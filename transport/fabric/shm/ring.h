// A stream of packets through a ring of bytes in shared memory, with one writer
// and one reader.
//
// A packet is a u32 length, a u32 stamp, its bytes, and padding to 8 bytes. A
// packet wraps around at the ring's end. Integers have the processor's byte
// order, which both processes share.
//
// The stamp is computed from the length and the position. The stamp
// distinguishes a packet from arbitrary bytes, and from bytes of an earlier
// round. A reader therefore notices a wrong header, and unread bytes that were
// overwritten. The stamp does not protect against a peer that forges it.
//
// A ring grows once. At first only its first kFirstRingBytes are used. When a
// packet does not fit, the writer allocates the rest, and writes the length
// kGrown at the head. The bytes between the head and the next multiple of
// kFirstRingBytes stay empty. The ring continues in its new part, which begins
// where the old part ends. Unread packets therefore stay where they are, and
// neither side waits.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_RING_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "transport/fabric/shm/control.h"

namespace penstock {
namespace fabric {
namespace shm {

constexpr size_t kMaxPacketBytes = 64 * 1024;
constexpr uint32_t kGrown = 0xffffffff;

// The header before a packet's bytes.
struct RingHeader {
  uint32_t length;
  uint32_t stamp;
};

// Returns the header of a packet of `length` at `position`, with its stamp.
RingHeader RingHeaderAt(uint64_t position, uint32_t length);

// Maps positions, which count all bytes written so far, to offsets in the ring.
class RingShape {
 public:
  explicit RingShape(uint64_t full_bytes) : full_bytes_(full_bytes) {}

  uint64_t bytes() const { return bytes_; }
  uint64_t full_bytes() const { return full_bytes_; }
  bool has_grown() const { return bytes_ == full_bytes_; }
  uint64_t OffsetOf(uint64_t position) const {
    return (position - base_) & (bytes_ - 1);
  }
  // Returns the number of bytes that are skipped if the ring grows at
  // `position`. The ring continues after the skipped bytes.
  static uint64_t GapAt(uint64_t position) {
    return kFirstRingBytes - position % kFirstRingBytes;
  }
  // Adds the new part of the ring. The new part begins at `position`, a
  // multiple of kFirstRingBytes.
  void GrowAt(uint64_t position) {
    base_ = position - kFirstRingBytes;
    bytes_ = full_bytes_;
  }

 private:
  const uint64_t full_bytes_;
  uint64_t bytes_ = kFirstRingBytes;
  uint64_t base_ = 0;
};

// Writes this side's ring. Used by one thread at a time.
class RingSender {
 public:
  enum class Result {
    kSent,
    kFull,      // nothing was sent; RoomHasCome() will return true
    kBroken,    // the peer claims to have read what was never written
    kNoMemory,  // the packet is larger than the ring, which cannot grow
  };

  // Writes to the ring that follows `own`. Both pages must outlive this object.
  RingSender(ControlPage* own, const ControlPage* peer);

  // Copies `packet`, of at most kMaxPacketBytes, into the ring.
  Result Send(absl::Span<const uint8_t> packet);
  // Returns true if a packet did not fit before and would fit now. Also returns
  // true if the peer's tail is invalid; the next Send() reports this. Safe from
  // any thread.
  bool RoomHasCome() const;
  bool has_grown() const { return shape_.has_grown(); }
  // Stops waiting for room. Afterwards RoomHasCome() returns false.
  void StopWaiting();

 private:
  static constexpr uint64_t kNothing = ~uint64_t{0};

  // The result of a check for room.
  enum class Room {
    kEnough,
    kTooLittle,  // until the peer has read more
    kNever,      // the packet is larger than the ring, which cannot grow
    kNonsense,   // the peer claims to have read what was never written
  };

  static Result ResultOf(Room room);

  // Returns the number of unread bytes. If `peer_tail` is invalid, the result
  // exceeds the ring's size.
  uint64_t Used(uint64_t peer_tail) const;
  // Compares `need` with the present ring. Never returns kNever.
  Room CheckRoom(uint64_t need);
  // Checks for room as CheckRoom() does. Grows the ring if this helps and is
  // possible.
  Room MakeRoom(uint64_t need);
  // Grows the ring, if there is room for the mark kGrown. Returns the room for
  // `need` afterwards.
  Room GrowFor(uint64_t need);
  void Put(uint64_t position, const void* data, size_t size);
  void PutHeader(uint32_t length);  // at the head

  // Returns the total number of bytes written, as counted by this side. The
  // control page has a copy for the peer.
  uint64_t head() const { return head_.load(std::memory_order_relaxed); }
  void Publish(uint64_t head);

  ControlPage* const own_;
  const ControlPage* const peer_;
  uint8_t* const ring_;
  RingShape shape_;
  std::atomic<uint64_t> head_{0};
  bool can_grow_ = true;
  bool was_full_ = false;   // grow as soon as there is room for the mark
  uint64_t peer_tail_ = 0;  // as last read
  // The largest number of unread bytes at which the packet that did not fit
  // would fit.
  std::atomic<uint64_t> awaited_{kNothing};
};

// Reads the peer's ring. Used by one thread at a time.
class RingReceiver {
 public:
  enum class Result {
    kPacket,
    kEmpty,
    kBroken,  // a page holds invalid values, or there is no memory to grow
  };

  // Reads the ring of `peer_ring_bytes` that follows `peer`. Both pages must
  // outlive this object.
  RingReceiver(ControlPage* own, const ControlPage* peer,
               uint64_t peer_ring_bytes);

  // Returns the next packet in `*packet`, valid until the next call. This
  // object keeps a copy of the bytes, and the peer may immediately reuse their
  // room in the ring.
  Result Receive(absl::Span<const uint8_t>* packet);
  // Returns true if Receive() would return a packet or an error. Safe from any
  // thread.
  bool HasInput() const;
  bool has_grown() const { return shape_.has_grown(); }
  // Returns true if the peer waits for room. Ask after reading, and then ring.
  bool PeerWaits() const;

 private:
  // Skips the mark kGrown at the tail. `there` is the number of unread bytes.
  // Returns false if the mark is invalid, or if memory runs out.
  bool Grow(uint64_t there);
  void Get(uint64_t position, void* data, size_t size) const;
  // Reads the header at `position`. Returns true if its stamp is right.
  bool GetHeader(uint64_t position, RingHeader* header) const;
  uint64_t tail() const { return tail_.load(std::memory_order_relaxed); }
  void Publish(uint64_t tail);

  ControlPage* const own_;
  const ControlPage* const peer_;
  const uint8_t* const ring_;
  RingShape shape_;
  std::atomic<uint64_t> tail_{0};  // the peer sees a copy in the page
  std::vector<uint8_t> scratch_;   // grows to the largest packet
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_RING_H_
