#include "transport/fabric/shm/borrower.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/fabric/shm/setup_message.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// An honest peer's arena grows in few, large steps. Mapping costs this process
// address space and page tables.
constexpr size_t kMaxSegments = 1024;

}  // namespace

absl::StatusOr<absl::Span<const uint8_t>> Borrower::Find(
    const RemoteRegion& region) {
  const uint32_t id = SegmentOfKey(region.key);
  auto it = segments_.find(id);
  if (it == segments_.end()) {
    absl::Status received = ReceiveSegments(id);
    if (!received.ok()) return received;
    it = segments_.find(id);
  }
  const PeerSegment& segment = it->second;
  if (region.offset > segment.size() ||
      region.length > segment.size() - region.offset) {
    return absl::OutOfRangeError(absl::StrCat(
        "the peer's region [", region.offset, ", +", region.length,
        ") is not within its segment of ", segment.size(), " bytes"));
  }
  return absl::MakeConstSpan(segment.data() + region.offset, region.length);
}

absl::Status Borrower::ReceiveSegments(uint32_t wanted) {
  while (segments_.count(wanted) == 0) {
    absl::Status added = AddSegment();
    if (absl::IsNotFound(added)) {
      // The lender passes a segment before it names a region of it.
      return absl::InvalidArgumentError(absl::StrCat(
          "the peer names segment ", wanted, ", which it has not passed"));
    }
    if (!added.ok()) return added;
  }
  return absl::OkStatus();
}

absl::Status Borrower::AddSegment() {
  absl::StatusOr<ReceivedSetup> received = ReceiveSetup(socket_);
  if (!received.ok()) return received.status();
  const SetupMessage& message = received->message;
  if (message.kind != SetupMessage::Kind::kSegment ||
      segments_.size() == kMaxSegments ||
      segments_.count(message.segment_id) > 0) {
    return absl::InvalidArgumentError(
        "the peer passed something else than a new segment, or too many");
  }
  absl::StatusOr<PeerSegment> segment =
      PeerSegment::Map(std::move(received->fd), message.size);
  if (!segment.ok()) return segment.status();
  segments_.emplace(message.segment_id, *std::move(segment));
  return absl::OkStatus();
}

void Borrower::GiveBack(uint64_t key) {
  std::lock_guard<std::mutex> lock(release_mu_);
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
