#include "transport/fabric/shm/ring.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace fabric {
namespace shm {
namespace {

uint64_t Footprint(uint64_t length) {
  return (sizeof(RingHeader) + length + 7) / 8 * 8;
}

}  // namespace

RingHeader RingHeaderAt(uint64_t position, uint32_t length) {
  // The multiplier of the stamp: an odd number without a pattern, so that each
  // input bit changes many bits in the upper half of the result. Equals 2^64
  // divided by the golden ratio (Knuth, TAOCP vol. 3, 6.4).
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
  const uint64_t mixed = (position ^ (uint64_t{length} << 40)) * kFactor;
  return RingHeader{length, ~static_cast<uint32_t>(mixed >> 32)};
}

constexpr uint64_t RingSender::kNothing;

RingSender::RingSender(ControlPage* own, const ControlPage* peer)
    : own_(own),
      peer_(peer),
      ring_(reinterpret_cast<uint8_t*>(own) + kRingOffset),
      shape_(own->ring_bytes) {}

uint64_t RingSender::Used(uint64_t peer_tail) const {
  // Returns the unread bytes. The difference wraps to far above the ring's size
  // if the peer's tail is ahead of the head.
  return head() - peer_tail;
}

void RingSender::Publish(uint64_t head) {
  head_.store(head, std::memory_order_relaxed);
  own_->head.store(head, std::memory_order_release);
}

RingSender::Result RingSender::ResultOf(Room room) {
  switch (room) {
    case Room::kEnough:
      return Result::kSent;
    case Room::kTooLittle:
      return Result::kFull;
    case Room::kNever:
      return Result::kNoMemory;
    case Room::kNonsense:
      break;
  }
  return Result::kBroken;
}

RingSender::Room RingSender::CheckRoom(uint64_t need) {
  // Reads the peer's tail only if its last known value does not suffice. The
  // tail's cache line then stays with the peer.
  if (Used(peer_tail_) + need <= shape_.bytes()) return Room::kEnough;
  const uint64_t tail = peer_->tail.load(std::memory_order_acquire);
  const uint64_t used = Used(tail);
  if (used > shape_.bytes()) return Room::kNonsense;
  peer_tail_ = tail;
  return used + need <= shape_.bytes() ? Room::kEnough : Room::kTooLittle;
}

RingSender::Room RingSender::MakeRoom(uint64_t need) {
  const bool fits = need <= shape_.bytes();
  const Room room = fits ? CheckRoom(need) : Room::kTooLittle;
  if (room == Room::kNonsense || shape_.has_grown()) return room;
  if (room == Room::kEnough && !was_full_) return room;
  if (!can_grow_) return fits ? room : Room::kNever;
  const Room grown = GrowFor(need);
  return grown == Room::kTooLittle ? room : grown;
}

RingSender::Room RingSender::GrowFor(uint64_t need) {
  const uint64_t gap = RingShape::GapAt(head());
  const Room room = CheckRoom(gap);
  if (room != Room::kEnough) return room;
  const absl::Status grown =
      Populate(ring_ + kFirstRingBytes, shape_.full_bytes() - kFirstRingBytes,
               Access::kWrite);
  if (!grown.ok()) {
    can_grow_ = false;
    return MakeRoom(need);
  }
  PutHeader(kGrown);
  shape_.GrowAt(head() + gap);
  Publish(head() + gap);
  return CheckRoom(need);
}

RingSender::Result RingSender::Send(absl::Span<const uint8_t> packet) {
  const uint64_t need = Footprint(packet.size());
  const bool waited = awaited_.load(std::memory_order_relaxed) != kNothing;
  Room room = MakeRoom(need);
  if (room == Room::kTooLittle) {
    was_full_ = true;
    // The number of free bytes to wait for: enough for the packet, or for
    // growing the ring if this needs fewer bytes.
    const uint64_t least = shape_.has_grown() || !can_grow_
                               ? need
                               : std::min(need, RingShape::GapAt(head()));
    awaited_.store(shape_.bytes() - least, std::memory_order_relaxed);
    own_->sender_waits.store(1, std::memory_order_relaxed);
    // Orders setting the flag before reading the tail again. Pairs with the
    // reader's fence between writing the tail and reading the flag
    // (PeerWaits()).
    std::atomic_thread_fence(std::memory_order_seq_cst);
    room = MakeRoom(need);
    // Leaves the flag set if an earlier call was refused, because its caller
    // still waits for a signal.
    if (room == Room::kEnough && !waited) StopWaiting();
  }
  if (room != Room::kEnough) return ResultOf(room);
  PutHeader(static_cast<uint32_t>(packet.size()));
  Put(head() + sizeof(RingHeader), packet.data(), packet.size());
  Publish(head() + need);
  return Result::kSent;
}

bool RingSender::RoomHasCome() const {
  const uint64_t awaited = awaited_.load(std::memory_order_relaxed);
  if (awaited == kNothing) return false;
  const uint64_t used = Used(peer_->tail.load(std::memory_order_acquire));
  // Returns true also for invalid values, which the next Send() reports.
  return used <= awaited || used > shape_.full_bytes();
}

void RingSender::StopWaiting() {
  awaited_.store(kNothing, std::memory_order_relaxed);
  own_->sender_waits.store(0, std::memory_order_relaxed);
}

void RingSender::Put(uint64_t position, const void* data, size_t size) {
  if (size == 0) return;
  const uint64_t at = shape_.OffsetOf(position);
  const uint64_t first = std::min<uint64_t>(size, shape_.bytes() - at);
  std::memcpy(ring_ + at, data, first);
  if (first == size) return;
  std::memcpy(ring_, static_cast<const uint8_t*>(data) + first, size - first);
}

void RingSender::PutHeader(uint32_t length) {
  const RingHeader header = RingHeaderAt(head(), length);
  std::memcpy(ring_ + shape_.OffsetOf(head()), &header, sizeof header);
}

RingReceiver::RingReceiver(ControlPage* own, const ControlPage* peer,
                           uint64_t peer_ring_bytes)
    : own_(own),
      peer_(peer),
      ring_(reinterpret_cast<const uint8_t*>(peer) + kRingOffset),
      shape_(peer_ring_bytes) {}

void RingReceiver::Publish(uint64_t tail) {
  tail_.store(tail, std::memory_order_relaxed);
  own_->tail.store(tail, std::memory_order_release);
}

bool RingReceiver::GetHeader(uint64_t position, RingHeader* header) const {
  // Copies the header, because the peer may change it meanwhile. A header never
  // wraps around the ring's end.
  std::memcpy(header, ring_ + shape_.OffsetOf(position), sizeof *header);
  return header->stamp == RingHeaderAt(position, header->length).stamp;
}

RingReceiver::Result RingReceiver::Receive(absl::Span<const uint8_t>* packet) {
  const uint64_t head = peer_->head.load(std::memory_order_acquire);
  uint64_t there = head - tail();
  if (there == 0) {
    // Detects that the published tail was overwritten by other code. Otherwise
    // the peer might wait for room forever, or overwrite unread bytes.
    const uint64_t told = own_->tail.load(std::memory_order_relaxed);
    return told == tail() ? Result::kEmpty : Result::kBroken;
  }
  if (there > shape_.full_bytes() || there % 8 != 0) return Result::kBroken;
  RingHeader header;
  if (!GetHeader(tail(), &header)) return Result::kBroken;
  if (header.length == kGrown) {
    if (!Grow(there)) return Result::kBroken;
    there = head - tail();
    if (there == 0) return Result::kEmpty;
    if (!GetHeader(tail(), &header)) return Result::kBroken;
  }
  const uint32_t length = header.length;
  if (length > kMaxPacketBytes || Footprint(length) > there ||
      Footprint(length) > shape_.bytes()) {
    return Result::kBroken;
  }
  if (length > scratch_.size()) scratch_.resize(length);
  if (length > 0) Get(tail() + sizeof header, scratch_.data(), length);
  // Reads the header again after the bytes. A writer that overwrites unread
  // bytes changes the header first, so the copied bytes are good if the header
  // is unchanged.
  std::atomic_thread_fence(std::memory_order_acquire);
  RingHeader again;
  if (!GetHeader(tail(), &again) || again.length != length) {
    return Result::kBroken;
  }
  *packet = absl::MakeConstSpan(scratch_.data(), length);
  // Publishes the tail after each packet. This costs nothing while the sender
  // does not read the tail, and a waiting sender continues earlier.
  Publish(tail() + Footprint(length));
  return Result::kPacket;
}

bool RingReceiver::Grow(uint64_t there) {
  const uint64_t gap = RingShape::GapAt(tail());
  if (shape_.has_grown() || gap > there) return false;
  // Allocates the ring's new part if the peer has not allocated it. This
  // happens at most once, and the memory is charged to this process.
  const absl::Status grown =
      Populate(ring_ + kFirstRingBytes, shape_.full_bytes() - kFirstRingBytes,
               Access::kRead);
  if (!grown.ok()) return false;
  shape_.GrowAt(tail() + gap);
  Publish(tail() + gap);
  return true;
}

bool RingReceiver::HasInput() const {
  return peer_->head.load(std::memory_order_acquire) != tail();
}

bool RingReceiver::PeerWaits() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return peer_->sender_waits.load(std::memory_order_relaxed) != 0;
}

void RingReceiver::Get(uint64_t position, void* data, size_t size) const {
  const uint64_t at = shape_.OffsetOf(position);
  const uint64_t first = std::min<uint64_t>(size, shape_.bytes() - at);
  std::memcpy(data, ring_ + at, first);
  if (first == size) return;
  std::memcpy(static_cast<uint8_t*>(data) + first, ring_, size - first);
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
