#include "transport/fabric/shm/ring.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr uint64_t kLengthBytes = sizeof(uint32_t);

uint64_t Footprint(uint64_t length) {
  return (kLengthBytes + length + 7) / 8 * 8;
}

}  // namespace

RingSender::RingSender(ControlPage* own, const ControlPage* peer)
    : own_(own),
      peer_(peer),
      ring_(reinterpret_cast<uint8_t*>(own) + kRingOffset),
      ring_bytes_(own->ring_bytes) {}

uint64_t RingSender::Room(uint64_t peer_tail) const {
  // Wraps, to far above ring_bytes_, where the peer is ahead of the head.
  const uint64_t used = own_->head.load(std::memory_order_relaxed) - peer_tail;
  return ring_bytes_ - used;
}

RingSender::Result RingSender::CheckRoom(uint64_t need) {
  // The peer's tail is read only where the last one read does not do: its line
  // stays with the peer.
  if (Room(peer_tail_) >= need) return Result::kSent;
  const uint64_t tail = peer_->tail.load(std::memory_order_acquire);
  const uint64_t room = Room(tail);
  if (room > ring_bytes_) return Result::kBroken;
  peer_tail_ = tail;
  return room >= need ? Result::kSent : Result::kFull;
}

RingSender::Result RingSender::Send(absl::Span<const uint8_t> message) {
  const uint64_t need = Footprint(message.size());
  const bool waited = wanted_.load(std::memory_order_relaxed) != 0;
  Result result = CheckRoom(need);
  if (result == Result::kFull) {
    wanted_.store(need, std::memory_order_relaxed);
    own_->sender_waits.store(1, std::memory_order_relaxed);
    // Between the flag and the next look at the tail, against the reader's
    // fence between the tail and its look at the flag (PeerWaits()).
    std::atomic_thread_fence(std::memory_order_seq_cst);
    result = CheckRoom(need);
    // A caller that was refused before is still owed its word.
    if (result == Result::kSent && !waited) StopWaiting();
  }
  if (result != Result::kSent) return result;
  const uint64_t head = own_->head.load(std::memory_order_relaxed);
  const auto length = static_cast<uint32_t>(message.size());
  Put(head, &length, sizeof length);
  Put(head + kLengthBytes, message.data(), message.size());
  own_->head.store(head + need, std::memory_order_release);
  return Result::kSent;
}

bool RingSender::RoomHasCome() const {
  const uint64_t wanted = wanted_.load(std::memory_order_relaxed);
  if (wanted == 0) return false;
  return Room(peer_->tail.load(std::memory_order_acquire)) >= wanted;
}

void RingSender::StopWaiting() {
  wanted_.store(0, std::memory_order_relaxed);
  own_->sender_waits.store(0, std::memory_order_relaxed);
}

void RingSender::Put(uint64_t position, const void* data, size_t size) {
  if (size == 0) return;
  const uint64_t at = position & (ring_bytes_ - 1);
  const uint64_t first = std::min<uint64_t>(size, ring_bytes_ - at);
  std::memcpy(ring_ + at, data, first);
  if (first == size) return;
  std::memcpy(ring_, static_cast<const uint8_t*>(data) + first, size - first);
}

RingReceiver::RingReceiver(ControlPage* own, const ControlPage* peer,
                           uint64_t peer_ring_bytes)
    : own_(own),
      peer_(peer),
      ring_(reinterpret_cast<const uint8_t*>(peer) + kRingOffset),
      ring_bytes_(peer_ring_bytes) {}

RingReceiver::Result RingReceiver::Receive(uint8_t* scratch, size_t* size) {
  const uint64_t tail = own_->tail.load(std::memory_order_relaxed);
  const uint64_t head = peer_->head.load(std::memory_order_acquire);
  const uint64_t there = head - tail;
  if (there == 0) return Result::kEmpty;
  if (there > ring_bytes_ || there % 8 != 0) return Result::kBroken;
  uint32_t length;  // a copy: the peer may change the ring meanwhile
  Get(tail, &length, sizeof length);
  if (length > kMaxMessageBytes || Footprint(length) > there) {
    return Result::kBroken;
  }
  Get(tail + kLengthBytes, scratch, length);
  *size = length;
  // At once, not per batch: it costs nothing while the sender does not look,
  // and one that waits for room goes on early.
  own_->tail.store(tail + Footprint(length), std::memory_order_release);
  return Result::kMessage;
}

bool RingReceiver::HasInput() const {
  return peer_->head.load(std::memory_order_acquire) !=
         own_->tail.load(std::memory_order_relaxed);
}

bool RingReceiver::PeerWaits() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return peer_->sender_waits.load(std::memory_order_relaxed) != 0;
}

void RingReceiver::Get(uint64_t position, void* data, size_t size) const {
  const uint64_t at = position & (ring_bytes_ - 1);
  const uint64_t first = std::min<uint64_t>(size, ring_bytes_ - at);
  std::memcpy(data, ring_ + at, first);
  if (first == size) return;
  std::memcpy(static_cast<uint8_t*>(data) + first, ring_, size - first);
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
