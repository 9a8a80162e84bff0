#include "transport/fabric/shm/borrower.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/progress/aside.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// What a peer that floods may have taken in before others have their turn.
constexpr int kTakeInBudget = 16;

}  // namespace

absl::StatusOr<Borrower::Borrowed> Borrower::Find(const RemotePart& part) {
  const uint32_t id = SegmentOfKey(part.key);
  std::shared_ptr<LentSegment> segment;
  {
    base::MutexLock lock(&mu_);
    auto it = segments_.find(id);
    if (it == segments_.end()) {
      absl::Status received = ReceiveLocked(id);
      if (!received.ok()) return received;
      it = segments_.find(id);
    }
    segment = it->second;
  }
  if (part.offset > segment->size() ||
      part.length > segment->size() - part.offset) {
    return absl::OutOfRangeError(absl::StrCat(
        "the peer's region [", part.offset, ", +", part.length,
        ") is not within its segment of ", segment->size(), " bytes"));
  }
  absl::Status good = segment->Check(part.offset, part.length);
  if (!good.ok()) return good;
  Borrowed borrowed;
  borrowed.bytes =
      absl::MakeConstSpan(segment->data() + part.offset, part.length);
  borrowed.segment = std::move(segment);
  return borrowed;
}

absl::Status Borrower::ReceiveLocked(uint32_t wanted) {
  while (segments_.count(wanted) == 0) {
    absl::Status received = ReceiveOneLocked();
    if (absl::IsNotFound(received)) {
      if (!refused_.ok()) return refused_;
      // The lender passes a segment before it names a region of it.
      return absl::InvalidArgumentError(absl::StrCat(
          "the peer names segment ", wanted, ", which it does not lend"));
    }
    if (!received.ok()) return received;
  }
  return absl::OkStatus();
}

bool Borrower::TakeIn() {
  base::MutexLock lock(&mu_);
  absl::Status received;
  for (int i = 0; i < kTakeInBudget && received.ok(); ++i) {
    received = ReceiveOneLocked();
  }
  if (received.ok() || absl::IsNotFound(received)) return true;
  refused_ = std::move(received);
  return false;
}

absl::Status Borrower::ReceiveOneLocked() {
  // Each segment causes tasks, and a peer may lend and take back as it likes.
  if (progress::IsBusyAside()) {
    return absl::ResourceExhaustedError(
        "too much waits to be unmapped to map a peer's segment");
  }
  absl::StatusOr<ReceivedSetup> received = ReceiveSetup(socket_);
  if (!received.ok()) return received.status();
  const SetupMessage& message = received->message;
  switch (message.kind) {
    case SetupMessage::Kind::kSegment:
      return AddLocked(message.segment_id, message.size,
                       std::move(received->fd));
    case SetupMessage::Kind::kTakeBack: {
      auto it = segments_.find(message.segment_id);
      if (it == segments_.end()) break;
      bytes_ -= it->second->size();
      segments_.erase(it);
      return absl::OkStatus();
    }
    case SetupMessage::Kind::kHello:
    case SetupMessage::Kind::kWelcome:
      break;
  }
  return absl::InvalidArgumentError(
      "the peer passed something else than a new segment");
}

absl::Status Borrower::AddLocked(uint32_t id, uint64_t size,
                                 progress::ForeignFd fd) {
  if (segments_.size() == kMaxPeerSegments || segments_.count(id) > 0 ||
      size > kMaxPeerBytes - bytes_) {
    return absl::InvalidArgumentError(
        "the peer lends a segment twice, or too much");
  }
  absl::StatusOr<std::shared_ptr<LentSegment>> segment =
      LentSegment::Get(std::move(fd), size);
  if (!segment.ok()) return segment.status();
  bytes_ += (*segment)->size();
  segments_.emplace(id, *std::move(segment));
  return absl::OkStatus();
}

void Borrower::GiveBack(uint64_t key) {
  base::MutexLock lock(&release_mu_);
  const uint64_t head = own_->release_head.load(std::memory_order_relaxed);
  // There is room: no more loans are out than there are entries. A peer that
  // counts otherwise loses its own loans only.
  own_->releases[head % kMaxLoans].store(LoanOfKey(key),
                                         std::memory_order_relaxed);
  // Releases the reads of the loan's bytes too: the lender writes there next.
  own_->release_head.store(head + 1, std::memory_order_release);
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
