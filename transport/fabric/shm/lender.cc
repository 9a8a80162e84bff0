#include "transport/fabric/shm/lender.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/fabric/shm/setup_message.h"

namespace penstock {
namespace fabric {
namespace shm {

struct Lender::LentParts {
  explicit LentParts(const Parts& lent) : parts(lent) {}
  const Parts parts;
};

Lender::Lender(std::shared_ptr<Arena> arena, int socket,
               const ControlPage* peer, DeviceLender* devices)
    : arena_(std::move(arena)),
      socket_(socket),
      peer_(peer),
      devices_(devices) {}

absl::StatusOr<Exposure> Lender::Expose(const memory::Payload& payload,
                                        size_t max_parts) {
  // Ends returned loans first, because they make room.
  absl::Status reclaimed = Reclaim();
  if (!reclaimed.ok()) return reclaimed;
  if (count() >= kMaxLoans) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the peer still reads ", count(), " messages"));
  }
  absl::StatusOr<Parts> parts = MakeParts(payload, max_parts);
  if (!parts.ok()) return parts.status();
  return Lend(*std::move(parts));
}

absl::optional<Lender::Part> Lender::Locate(const memory::Bytes& piece) {
  if (piece.device != nullptr) {
    absl::optional<DeviceLender::Lent> lent = devices_->Lend(piece);
    if (!lent.has_value()) return absl::nullopt;
    Place place;
    place.segment_id = lent->segment_id;
    place.offset = lent->offset;
    return Part{place, piece, std::move(lent->share)};
  }
  const auto place = arena_->Find(piece.data, piece.size);
  if (!place.has_value()) return absl::nullopt;
  return Part{*place, piece, nullptr};
}

absl::StatusOr<Lender::Parts> Lender::MakeParts(const memory::Payload& payload,
                                                size_t max_parts) {
  const memory::Payload::Pieces& pieces = payload.pieces();
  Located located(pieces.size());
  if (pieces.size() == 1) {
    located[0] = Locate(pieces[0]);
    if (located[0].has_value()) return Parts{*std::move(located[0])};
  }
  std::vector<bool> reachable(pieces.size(), false);
  for (size_t i = 0; pieces.size() > 1 && max_parts > 1 && i < pieces.size();
       ++i) {
    if (pieces[i].size >= kMinPartBytes) located[i] = Locate(pieces[i]);
    reachable[i] = located[i].has_value();
  }
  return Gather(payload,
                DivideIntoParts(payload, reachable, kMinPartBytes, max_parts),
                std::move(located));
}

absl::StatusOr<Lender::Parts> Lender::Gather(
    const memory::Payload& payload, const std::vector<Stretch>& stretches,
    Located located) {
  std::shared_ptr<ArenaLease> lease;
  const size_t gathered_bytes = GatheredBytes(stretches);
  if (gathered_bytes > 0) {
    absl::StatusOr<std::shared_ptr<ArenaLease>> allocated =
        arena_->Allocate(gathered_bytes);
    if (!allocated.ok()) {
      // Lets other links notice returned loans, because an idle link may not
      // have noticed them yet.
      arena_->ReclaimLoans();
      allocated = arena_->Allocate(gathered_bytes);
    }
    if (!allocated.ok()) return allocated.status();
    lease = *std::move(allocated);
    absl::Status copied = fabric::Gather(payload, stretches, lease->data());
    // Returns RESOURCE_EXHAUSTED, which concerns only this message: the caller
    // keeps the connection, and sends the message over another fabric.
    if (!copied.ok()) return absl::ResourceExhaustedError(copied.message());
  }
  Parts parts;
  GatheredLayout layout;
  for (const Stretch& stretch : stretches) {
    if (stretch.in_place) {
      parts.push_back(*std::move(located[stretch.first_piece]));
      continue;
    }
    const size_t begin = layout.Add(stretch.bytes);
    Part part{
        lease->place(), {lease->data() + begin, stretch.bytes, lease}, nullptr};
    part.place.offset += begin;
    parts.push_back(std::move(part));
  }
  return parts;
}

Lender::Owner Lender::OwnerOf(const Parts& parts) {
  if (parts.size() == 1 && parts[0].device == nullptr) {
    return parts[0].bytes.owner;
  }
  return std::make_shared<const LentParts>(parts);
}

absl::StatusOr<Exposure> Lender::Lend(Parts parts) {
  Exposure exposure;
  for (const Part& part : parts) {
    exposure.region.push_back({0, part.place.offset, part.bytes.size});
    exposure.stable.Append(part.bytes);
  }
  const Owner owner = OwnerOf(parts);
  base::MutexLock lock(&mu_);
  absl::StatusOr<uint32_t> loan = AddLocked(parts, owner);
  if (!loan.ok()) return loan.status();
  for (size_t i = 0; i < parts.size(); ++i) {
    exposure.region[i].key = RegionKey(parts[i].place.segment_id, *loan);
  }
  return exposure;
}

absl::StatusOr<uint32_t> Lender::AddLocked(const Parts& parts, Owner owner) {
  if (ended_) return absl::UnavailableError("the peer hung up");
  for (const Part& part : parts) {
    if (part.device != nullptr) continue;  // passed by devices_
    absl::Status sent = SendSegmentLocked(part.place);
    if (!sent.ok()) return sent;
  }
  // Skips numbers that are in use, because 32-bit numbers wrap around.
  while (loans_.count(next_loan_) > 0) ++next_loan_;
  const uint32_t loan = next_loan_++;
  loans_[loan] = std::move(owner);
  count_.store(loans_.size(), std::memory_order_relaxed);
  return loan;
}

absl::Status Lender::SendSegmentLocked(const Place& place) {
  if (sent_segments_.count(place.segment_id) > 0) return absl::OkStatus();
  SendTakeBacksLocked();
  SetupMessage message;
  message.kind = SetupMessage::Kind::kSegment;
  message.size = place.segment_size;
  message.segment_id = place.segment_id;
  absl::Status sent = SendSetup(socket_, message, place.segment_fd);
  if (!sent.ok()) {
    // Returns RESOURCE_EXHAUSTED, so that the caller sends this message over
    // another fabric. For the next message, the segment is passed again.
    return absl::ResourceExhaustedError(sent.message());
  }
  sent_segments_.insert(place.segment_id);
  return absl::OkStatus();
}

void Lender::TakeBack(uint32_t segment_id) {
  base::MutexLock lock(&mu_);
  if (ended_ || sent_segments_.erase(segment_id) == 0) return;
  to_take_back_.push_back(segment_id);
  SendTakeBacksLocked();
}

void Lender::SendTakeBacksLocked() {
  while (!to_take_back_.empty()) {
    SetupMessage message;
    message.kind = SetupMessage::Kind::kTakeBack;
    message.segment_id = to_take_back_.back();
    // Stops if the socket is full. The remaining messages are sent before any
    // other message.
    if (!SendSetup(socket_, message, -1).ok()) return;
    to_take_back_.pop_back();
  }
}

Lender::Owner Lender::TakeLocked(uint32_t loan) {
  auto it = loans_.find(loan);
  if (it == loans_.end()) return nullptr;
  Owner owner = std::move(it->second);
  loans_.erase(it);
  count_.store(loans_.size(), std::memory_order_relaxed);
  return owner;
}

void Lender::End(uint64_t key) {
  Owner ended;  // released after the lock
  base::MutexLock lock(&mu_);
  ended = TakeLocked(LoanOfKey(key));
}

absl::Status Lender::Reclaim() {
  // The owners of the ended loans, usually one. They are released after
  // unlocking.
  absl::InlinedVector<Owner, 4> ended;
  base::MutexLock lock(&mu_);
  const uint64_t head = peer_->release_head.load(std::memory_order_acquire);
  if (head - reclaimed_ > kMaxLoans) {
    return absl::DataLossError("the peer gave back more than it had");
  }
  for (; reclaimed_ != head; ++reclaimed_) {
    const auto& entry = peer_->releases[reclaimed_ % kMaxLoans];
    Owner owner = TakeLocked(entry.load(std::memory_order_relaxed));
    if (owner != nullptr) ended.push_back(std::move(owner));
  }
  return absl::OkStatus();
}

void Lender::EndAll() {
  {
    std::map<uint32_t, Owner> ended;  // released after the lock
    base::MutexLock lock(&mu_);
    ended_ = true;
    ended.swap(loans_);
    count_.store(0, std::memory_order_relaxed);
  }
  // Ends the device lender last, so that memory of the loans is freed on
  // another thread.
  devices_->End();
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
