// Packets through a ring of bytes in shared memory, with one writer and one
// reader.
//
// A packet is a u32 length, a u32 stamp, its bytes, and padding to 8 bytes. At
// the ring's end it goes on at the ring's beginning. Integers have the byte
// order of the processor, which both processes share.
//
// The stamp is computed from the length and the position. It tells a packet
// from bytes that lie there by chance or from an earlier round. So a reader
// notices when a wrong head sent it there, or when unread bytes were written
// over. The stamp is no protection against a peer that forges it.
//
// A ring grows once. At first it uses only its first kFirstRingBytes. When a
// packet does not fit there, the writer allocates the rest, and writes the
// length kGrown at the head. What follows, up to the next multiple of
// kFirstRingBytes, is empty; there the ring goes on in its new part. The new
// part begins where the old one ends, so unread packets lie in the larger ring
// where they lay before: nothing is moved or waited for.

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

// What lies before a packet's bytes.
struct RingHeader {
  uint32_t length;
  uint32_t stamp;
};

// Returns the header of a packet of `length` at `position`, with its stamp.
RingHeader RingHeaderAt(uint64_t position, uint32_t length);

// Maps positions, which count all bytes ever written, to offsets in the ring.
class RingShape {
 public:
  explicit RingShape(uint64_t full_bytes) : full_bytes_(full_bytes) {}

  uint64_t bytes() const { return bytes_; }
  uint64_t full_bytes() const { return full_bytes_; }
  bool has_grown() const { return bytes_ == full_bytes_; }
  uint64_t OffsetOf(uint64_t position) const {
    return (position - base_) & (bytes_ - 1);
  }
  // Returns the bytes from `position` to where the ring goes on after it has
  // grown there.
  static uint64_t GapAt(uint64_t position) {
    return kFirstRingBytes - position % kFirstRingBytes;
  }
  // Adds the new part, which begins at `position`, a multiple of
  // kFirstRingBytes.
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

  // `own` has its ring behind it. Both pages must outlive this.
  RingSender(ControlPage* own, const ControlPage* peer);

  // Copies `packet`, of at most kMaxPacketBytes, into the ring.
  Result Send(absl::Span<const uint8_t> packet);
  // Returns true if a packet did not fit and now would. Also if the peer's
  // tail is nonsense, which the next Send() finds. Safe from any thread.
  bool RoomHasCome() const;
  bool has_grown() const { return shape_.has_grown(); }
  // Stops waiting for room: RoomHasCome() returns false again.
  void StopWaiting();

 private:
  static constexpr uint64_t kNothing = ~uint64_t{0};

  // Says whether a packet of some size fits.
  enum class Room {
    kEnough,
    kTooLittle,  // until the peer has read more
    kNever,      // the packet is larger than the ring, which cannot grow
    kNonsense,   // the peer claims to have read what was never written
  };

  static Result ResultOf(Room room);

  // Returns the unread bytes: more than the ring has if `peer_tail` is
  // nonsense.
  uint64_t Used(uint64_t peer_tail) const;
  // Compares `need` with the ring as it is. Never returns kNever.
  Room CheckRoom(uint64_t need);
  // As CheckRoom(), but grows the ring if that helps and it can.
  Room MakeRoom(uint64_t need);
  // Grows the ring, if there is room to say so. Returns whether `need` fits
  // then.
  Room GrowFor(uint64_t need);
  void Put(uint64_t position, const void* data, size_t size);
  void PutHeader(uint32_t length);  // at the head

  // Returns this side's own count. The peer sees a copy of it in the page.
  uint64_t head() const { return head_.load(std::memory_order_relaxed); }
  void Publish(uint64_t head);

  ControlPage* const own_;
  const ControlPage* const peer_;
  uint8_t* const ring_;
  RingShape shape_;
  std::atomic<uint64_t> head_{0};
  bool can_grow_ = true;
  bool was_full_ = false;   // grow as soon as there is room to say so
  uint64_t peer_tail_ = 0;  // as last read
  // While a packet did not fit: the most unread bytes with which it would.
  std::atomic<uint64_t> awaited_{kNothing};
};

// Reads the peer's ring. Used by one thread at a time.
class RingReceiver {
 public:
  enum class Result {
    kPacket,
    kEmpty,
    kBroken,  // either page holds nonsense, or there is no memory to grow
  };

  // `peer` has its ring of `peer_ring_bytes` behind it. Both pages must outlive
  // this.
  RingReceiver(ControlPage* own, const ControlPage* peer,
               uint64_t peer_ring_bytes);

  // Returns the next packet in `*packet`, valid until the next call. The bytes
  // are a copy in memory of this object; the peer may use their place again.
  Result Receive(absl::Span<const uint8_t>* packet);
  // Returns whether there is something to Receive(), perhaps nonsense. Safe
  // from any thread.
  bool HasInput() const;
  bool has_grown() const { return shape_.has_grown(); }
  // Returns whether the peer waits for room. Ask after reading, and ring.
  bool PeerWaits() const;

 private:
  // Goes past a kGrown at the tail, from which on `there` bytes are written.
  // Returns false if that cannot be right, or if there is no memory.
  bool Grow(uint64_t there);
  void Get(uint64_t position, void* data, size_t size) const;
  // Reads the header at `position`. Returns whether its stamp is right.
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
