// Messages through a ring of bytes in shared memory: one writer, one reader.
//
// A message is a u32 length, a u32 stamp, then its bytes, then padding to 8
// bytes, and goes on at the ring's beginning where it meets its end. Both
// processes run on one processor architecture, so integers have its byte order.
//
// The stamp follows from the length and the position: what lies there by chance
// or from an earlier round is no message, and a reader that was sent there by a
// wrong head, or whose unread bytes were written over, finds out. It is no
// protection against a peer that means it.
//
// A ring grows once. At first only its first kFirstRingBytes are in use. When a
// message does not fit there, the writer has the rest allocated, and writes the
// length kGrown at the head: what follows, up to the next multiple of
// kFirstRingBytes, is empty, and behind it the ring goes on in the part that is
// new. As that begins where the old part ends, the places of what is still
// unread stay those of the larger ring, and nothing is moved or waited for.

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

constexpr size_t kMaxMessageBytes = 64 * 1024;
constexpr uint32_t kGrown = 0xffffffff;

// What comes before a message's bytes.
struct RingHeader {
  uint32_t length;
  uint32_t stamp;
};

RingHeader RingHeaderAt(uint64_t position, uint32_t length);

// Where the positions of a ring are in its memory. Pure.
class RingShape {
 public:
  explicit RingShape(uint64_t full_bytes) : full_bytes_(full_bytes) {}

  uint64_t bytes() const { return bytes_; }
  uint64_t full_bytes() const { return full_bytes_; }
  bool has_grown() const { return bytes_ == full_bytes_; }
  uint64_t OffsetOf(uint64_t position) const {
    return (position - base_) & (bytes_ - 1);
  }
  // Bytes from `position` to where the ring goes on once it has grown there.
  static uint64_t GapAt(uint64_t position) {
    return kFirstRingBytes - position % kFirstRingBytes;
  }
  // The first position in the new part, a multiple of kFirstRingBytes.
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
    kFull,      // RoomHasCome() will be true
    kBroken,    // the peer claims to have read what was never written
    kNoMemory,  // it is larger than the ring, which cannot grow
  };

  // `own` is followed by its ring; both outlive this.
  RingSender(ControlPage* own, const ControlPage* peer);

  // Copies `message`, at most kMaxMessageBytes.
  Result Send(absl::Span<const uint8_t> message);
  // A message did not fit and now would, or the peer's tail is nonsense, which
  // the next Send() finds. Safe from any thread.
  bool RoomHasCome() const;
  bool has_grown() const { return shape_.has_grown(); }
  // Room is waited for no longer.
  void StopWaiting();

 private:
  static constexpr uint64_t kNothing = ~uint64_t{0};

  // Unread bytes; more than the ring's if the peer's tail is nonsense.
  uint64_t Used(uint64_t peer_tail) const;
  Result CheckRoom(uint64_t need);
  Result MakeRoom(uint64_t need);
  Result GrowFor(uint64_t need);
  void Put(uint64_t position, const void* data, size_t size);
  void PutHeader(uint32_t length);  // at the head

  // The page's copy is for the peer; this one nobody else can change.
  uint64_t head() const { return head_.load(std::memory_order_relaxed); }
  void Publish(uint64_t head);

  ControlPage* const own_;
  const ControlPage* const peer_;
  uint8_t* const ring_;
  RingShape shape_;
  std::atomic<uint64_t> head_{0};
  bool can_grow_ = true;
  bool was_full_ = false;   // so it grows as soon as there is room for that
  uint64_t peer_tail_ = 0;  // as last read
  // While something did not fit: the most that may be unread for another try.
  std::atomic<uint64_t> awaited_{kNothing};
};

// Reads the peer's ring. Used by one thread at a time.
class RingReceiver {
 public:
  enum class Result {
    kMessage,
    kEmpty,
    kBroken,  // nonsense in either page, or a ring that grew has no memory
  };

  // `peer` is followed by its ring of `peer_ring_bytes`; both outlive this.
  RingReceiver(ControlPage* own, const ControlPage* peer,
               uint64_t peer_ring_bytes);

  // The next message, in memory of this object until the next call; its place
  // in the ring is free for the peer afterwards.
  Result Receive(absl::Span<const uint8_t>* message);
  // Something, perhaps nonsense, is there. Safe from any thread.
  bool HasInput() const;
  bool has_grown() const { return shape_.has_grown(); }
  // After reading: the peer waits for the room that was made.
  bool PeerWaits() const;

 private:
  // Past a kGrown at the tail, of which `there` bytes are written from there
  // on.
  bool Grow(uint64_t there);
  void Get(uint64_t position, void* data, size_t size) const;
  // Whether what is at `position` is there as it was written.
  bool GetHeader(uint64_t position, RingHeader* header) const;
  uint64_t tail() const { return tail_.load(std::memory_order_relaxed); }
  void Publish(uint64_t tail);

  ControlPage* const own_;
  const ControlPage* const peer_;
  const uint8_t* const ring_;
  RingShape shape_;
  std::atomic<uint64_t> tail_{0};  // the page's copy is for the peer
  std::vector<uint8_t> scratch_;   // as large as the largest message so far
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_RING_H_
