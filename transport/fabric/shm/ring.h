// Messages through a ring of bytes in shared memory: one writer, one reader.
//
// A message is a u32 length, then its bytes, then padding to 8 bytes, and goes
// on at the ring's beginning where it meets its end. Both processes run on one
// processor architecture, so integers have its byte order.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_RING_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "transport/fabric/shm/control.h"

namespace penstock {
namespace fabric {
namespace shm {

constexpr size_t kMaxMessageBytes = 64 * 1024;

// Writes this side's ring. Used by one thread at a time.
class RingSender {
 public:
  enum class Result {
    kSent,
    kFull,    // RoomHasCome() will be true
    kBroken,  // the peer claims to have read what was never written
  };

  // `own` is followed by its ring; both outlive this.
  RingSender(ControlPage* own, const ControlPage* peer);

  // Copies `message`, at most kMaxMessageBytes.
  Result Send(absl::Span<const uint8_t> message);
  // A message did not fit and now would, or the peer's tail is nonsense, which
  // the next Send() finds. Safe from any thread.
  bool RoomHasCome() const;
  // Room is waited for no longer.
  void StopWaiting();

 private:
  // Free bytes; more than the ring's if the peer's tail is nonsense.
  uint64_t Room(uint64_t peer_tail) const;
  Result CheckRoom(uint64_t need);
  void Put(uint64_t position, const void* data, size_t size);

  ControlPage* const own_;
  const ControlPage* const peer_;
  uint8_t* const ring_;
  const uint64_t ring_bytes_;
  uint64_t peer_tail_ = 0;           // as last read
  std::atomic<uint64_t> wanted_{0};  // what did not fit, with length
};

// Reads the peer's ring. Used by one thread at a time.
class RingReceiver {
 public:
  enum class Result {
    kMessage,
    kEmpty,
    kBroken,  // the peer wrote nonsense
  };

  // `peer` is followed by its ring of `peer_ring_bytes`; both outlive this.
  RingReceiver(ControlPage* own, const ControlPage* peer,
               uint64_t peer_ring_bytes);

  // Copies the next message to `scratch` (kMaxMessageBytes) and sets *size;
  // its place in the ring is free for the peer afterwards.
  Result Receive(uint8_t* scratch, size_t* size);
  // Something, perhaps nonsense, is there. Safe from any thread.
  bool HasInput() const;
  // After reading: the peer waits for the room that was made.
  bool PeerWaits() const;

 private:
  void Get(uint64_t position, void* data, size_t size) const;

  ControlPage* const own_;
  const ControlPage* const peer_;
  const uint8_t* const ring_;
  const uint64_t ring_bytes_;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_RING_H_
