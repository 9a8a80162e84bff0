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

// Returns OK if the part lies within what has `size` bytes.
absl::Status CheckWithin(const RemotePart& part, absl::string_view what,
                         uint64_t size) {
  if (part.offset <= size && part.length <= size - part.offset) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(
      absl::StrCat("the peer's region [", part.offset, ", +", part.length,
                   ") is not within its ", what, " of ", size, " bytes"));
}

}  // namespace

absl::StatusOr<Borrower::Borrowed> Borrower::Find(const RemotePart& part) {
  const uint32_t id = SegmentOfKey(part.key);
  std::shared_ptr<LentSegment> segment;
  std::shared_ptr<BorrowedDevice> device;
  {
    base::MutexLock lock(&mu_);
    absl::Status received = ReceiveLocked(id);
    if (!received.ok()) return received;
    if (IsDeviceId(id)) {
      device = device_allocations_.find(id)->second;
    } else {
      segment = segments_.find(id)->second;
    }
  }
  if (device != nullptr) return FindOnDevice(part, device);
  absl::Status good = CheckWithin(part, "segment", segment->size());
  if (good.ok()) good = segment->Check(part.offset, part.length);
  if (!good.ok()) return good;
  Borrowed borrowed;
  borrowed.bytes =
      absl::MakeConstSpan(segment->data() + part.offset, part.length);
  borrowed.owner = std::move(segment);
  return borrowed;
}

absl::StatusOr<Borrower::Borrowed> Borrower::FindOnDevice(
    const RemotePart& part, const std::shared_ptr<BorrowedDevice>& device) {
  absl::Status good = CheckWithin(part, "allocation", device->size());
  if (!good.ok()) return good;
  if (part.length < memory::kMinDeviceBytes) {
    return absl::InvalidArgumentError(
        "the peer's part of a device's memory is too short");
  }
  // Without the lock: the event loop takes things in meanwhile.
  absl::StatusOr<const uint8_t*> data = device->Open();
  if (!data.ok()) {
    Decline(SegmentOfKey(part.key), data.status());
    return data.status();
  }
  Borrowed borrowed;
  borrowed.bytes = absl::MakeConstSpan(*data + part.offset, part.length);
  borrowed.device = device->access();
  borrowed.owner = device;
  return borrowed;
}

void Borrower::Decline(uint32_t id, const absl::Status& why) {
  base::MutexLock lock(&mu_);
  why_declined_ = std::string(why.message());
  if (device_allocations_.count(id) == 0 || declined_.count(id) > 0) return;
  SetupMessage message;
  message.kind = SetupMessage::Kind::kDeclined;
  message.segment_id = id;
  // If the socket is full, the next part of the allocation tries again.
  if (SendSetup(socket_, message, -1).ok()) declined_.insert(id);
}

absl::Status Borrower::ReceiveLocked(uint32_t wanted) {
  while (!HasLocked(wanted)) {
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

Borrower::TakenIn Borrower::TakeIn() {
  base::MutexLock lock(&mu_);
  absl::Status received;
  for (int i = 0; i < kTakeInBudget && received.ok(); ++i) {
    received = ReceiveOneLocked();
  }
  if (received.ok() || absl::IsNotFound(received)) return TakenIn::kSome;
  return absl::IsResourceExhausted(received) ? TakenIn::kLater
                                             : TakenIn::kNever;
}

absl::Status Borrower::ReceiveOneLocked() {
  if (!violation_.ok()) return violation_;
  // Each segment causes tasks, and a peer may lend and take back as it likes.
  if (progress::IsBusyAside()) {
    return absl::ResourceExhaustedError(
        "too much waits to be unmapped to map a peer's segment");
  }
  absl::StatusOr<ReceivedSetup> received = ReceiveSetup(socket_);
  if (!received.ok()) return received.status();
  const bool is_of_device = IsDeviceId(received->message.segment_id);
  absl::Status taken = TakeOneLocked(*std::move(received));
  if (taken.ok()) return taken;
  if (is_of_device) violation_ = taken;
  refused_ = taken;
  return taken;
}

absl::Status Borrower::TakeOneLocked(ReceivedSetup received) {
  const SetupMessage& message = received.message;
  switch (message.kind) {
    case SetupMessage::Kind::kSegment:
      return AddLocked(message.segment_id, message.size,
                       std::move(received.fd));
    case SetupMessage::Kind::kTakeBack:
      if (!TakeBackLocked(message.segment_id)) break;
      return absl::OkStatus();
    case SetupMessage::Kind::kDevice:
      return AddDeviceLocked(message);
    case SetupMessage::Kind::kDeclined:
      return lender_->Decline(message.segment_id);
    case SetupMessage::Kind::kHello:
    case SetupMessage::Kind::kWelcome:
      break;
  }
  return absl::InvalidArgumentError(
      "the peer passed something else than a new segment");
}

bool Borrower::TakeBackLocked(uint32_t id) {
  const auto device = device_allocations_.find(id);
  if (device != device_allocations_.end()) {
    device_bytes_ -= device->second->size();
    device_allocations_.erase(device);
    declined_.erase(id);
    return true;
  }
  const auto segment = segments_.find(id);
  if (segment == segments_.end()) return devices_closed_ && IsDeviceId(id);
  bytes_ -= segment->second->size();
  segments_.erase(segment);
  return true;
}

absl::Status Borrower::AddDeviceLocked(const SetupMessage& message) {
  if (devices_ == nullptr) {
    return absl::InvalidArgumentError(
        "the peer passed a device's memory, which is not opened here");
  }
  if (devices_closed_) return absl::OkStatus();
  if (device_allocations_.size() == kMaxPassedDevices ||
      message.segment_id <= last_device_ ||
      message.size < memory::kMinDeviceBytes ||
      message.size > kMaxPassedDeviceBytes - device_bytes_) {
    return absl::InvalidArgumentError(
        "the peer passes a device's allocation twice, or too much, or nothing");
  }
  last_device_ = message.segment_id;
  device_bytes_ += message.size;
  device_allocations_.emplace(
      message.segment_id,
      BorrowedDevice::Make(devices_, message.size, message.handle));
  return absl::OkStatus();
}

void Borrower::CloseDevices() {
  base::MutexLock lock(&mu_);
  devices_closed_ = true;
  device_allocations_.clear();
  device_bytes_ = 0;
}

std::string Borrower::WhyDeclined() const {
  base::MutexLock lock(&mu_);
  return why_declined_;
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
