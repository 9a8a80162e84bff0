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

// Limits the messages that one call of TakeIn() receives. Another peer then
// gets a turn even if this peer floods.
constexpr int kTakeInBudget = 16;

// Returns OK if the part is within `size` bytes.
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
      device = device_allocations_.find(id)->second.device;
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
  borrowed.segment = std::move(segment);
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
  // Opens without the lock, so that the event loop can receive messages
  // meanwhile.
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
  const auto found = device_allocations_.find(id);
  if (found == device_allocations_.end() || found->second.is_declined) return;
  SetupMessage message;
  message.kind = SetupMessage::Kind::kDeclined;
  message.segment_id = id;
  // Records if the refusal was sent. If the socket is full, the next part of
  // the allocation tries again.
  found->second.is_declined = SendSetup(socket_, message, -1).ok();
}

absl::Status Borrower::ReceiveLocked(uint32_t wanted) {
  while (!HasLocked(wanted)) {
    absl::Status received = ReceiveOneLocked();
    if (absl::IsNotFound(received)) {
      if (!refused_.ok()) return refused_;
      // Rejects an unknown segment: an honest lender passes a segment before it
      // names a region of the segment.
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
  // Pauses while too many tasks wait: each segment causes tasks, and a peer can
  // lend and take back segments endlessly.
  if (progress::IsBusyAside()) {
    return absl::ResourceExhaustedError(
        "too many segments wait to be unmapped to map a further one");
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
    case SetupMessage::Kind::kClosed:
      return lender_->OnClosed(message.segment_id);
    case SetupMessage::Kind::kDoorbell:
      if (doorbell_ == nullptr) break;
      return doorbell_->TakePeers(std::move(received.fd));
    case SetupMessage::Kind::kHello:
    case SetupMessage::Kind::kWelcome:
      break;
  }
  return absl::InvalidArgumentError(
      "the peer passed something other than a new segment");
}

bool Borrower::TakeBackLocked(uint32_t id) {
  if (IsDeviceId(id)) return TakeDeviceBackLocked(id);
  const auto segment = segments_.find(id);
  if (segment == segments_.end()) return false;
  bytes_ -= segment->second->size();
  segment->second->RemoveUser();
  segments_.erase(segment);
  return true;
}

bool Borrower::TakeDeviceBackLocked(uint32_t id) {
  const auto found = device_allocations_.find(id);
  // Accepts an unknown allocation only after CloseDevices(): the allocation is
  // closed then, and the peer may not know this yet.
  if (found == device_allocations_.end()) return devices_closed_;
  if (std::exchange(found->second.is_taken_back, true)) return false;
  found->second.device.reset();
  return true;
}

absl::Status Borrower::AddDeviceLocked(const SetupMessage& message) {
  if (devices_ == nullptr) {
    return absl::InvalidArgumentError(
        "the peer passed a device's memory, which is not opened here");
  }
  if (device_allocations_.size() == kMaxPassedDevices ||
      message.segment_id <= last_device_ ||
      message.size > kMaxPassedDeviceBytes - device_bytes_) {
    return absl::InvalidArgumentError(
        "the peer passes a device's allocation twice, or too much");
  }
  last_device_ = message.segment_id;
  device_bytes_ += message.size;
  DeviceAllocation& added = device_allocations_[message.segment_id];
  added.size = message.size;
  added.is_closed = devices_closed_;
  if (devices_closed_) return absl::OkStatus();
  added.device = BorrowedDevice::Make(devices_, message.size, message.handle,
                                      peer_, message.segment_id);
  return absl::OkStatus();
}

void Borrower::Connect(std::weak_ptr<BorrowedDevice::Peer> peer) {
  base::MutexLock lock(&mu_);
  peer_ = std::move(peer);
}

void Borrower::LetGo() {
  base::MutexLock lock(&mu_);
  for (const auto& segment : segments_) segment.second->RemoveUser();
  segments_.clear();
}

void Borrower::CloseDevices() {
  base::MutexLock lock(&mu_);
  devices_closed_ = true;
  for (auto& allocation : device_allocations_) {
    allocation.second.device.reset();
  }
}

bool Borrower::OnClosed(uint32_t id) {
  base::MutexLock lock(&mu_);
  const auto found = device_allocations_.find(id);
  if (found != device_allocations_.end()) found->second.is_closed = true;
  return AnswerLocked();
}

bool Borrower::Answer() {
  base::MutexLock lock(&mu_);
  return AnswerLocked();
}

bool Borrower::AnswerLocked() {
  for (auto it = device_allocations_.begin();
       it != device_allocations_.end();) {
    const DeviceAllocation& allocation = it->second;
    const bool is_over = allocation.is_taken_back || devices_closed_;
    if (!allocation.is_closed || !is_over) {
      ++it;
      continue;
    }
    SetupMessage message;
    message.kind = SetupMessage::Kind::kClosed;
    message.segment_id = it->first;
    // Tries again later if the socket is full. Any other error means that the
    // peer has gone.
    if (absl::IsResourceExhausted(SendSetup(socket_, message, -1))) {
      return false;
    }
    device_bytes_ -= allocation.size;
    it = device_allocations_.erase(it);
  }
  return true;
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
  // Writes into the ring. There is room, because the ring has as many entries
  // as there can be loans. A peer that counts wrongly loses only its own loans.
  own_->releases[head % kMaxLoans].store(LoanOfKey(key),
                                         std::memory_order_relaxed);
  // The release also orders this store after the reads of the loan's bytes,
  // because the lender may now overwrite these bytes.
  own_->release_head.store(head + 1, std::memory_order_release);
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
