#include "transport/fabric/shm/device_lender.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "transport/base/steady_time.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/progress/aside.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr char kDeclined[] = "the peer could not open it";

absl::Status SendAbout(int socket, SetupMessage::Kind kind, uint32_t id,
                       uint64_t size, std::string handle) {
  SetupMessage message;
  message.kind = kind;
  message.segment_id = id;
  message.size = size;
  message.handle = std::move(handle);
  return SendSetup(socket, message, -1);
}

// Releases memory on another thread, because releasing the last reference may
// free the memory, for which a driver may wait for the device.
void FreeAside(std::shared_ptr<const void> memory) {
  if (memory == nullptr) return;
  progress::RunAside(progress::Aside::kDevice, [freed = std::move(memory)] {});
}

}  // namespace

DeviceLender::DeviceLender(int socket, const memory::DeviceAccess* devices)
    : socket_(socket),
      devices_(devices),
      lends_(devices != nullptr),
      next_segment_id_(kDeviceBit),
      reason_(devices != nullptr ? "" : "the peer opens no devices' memory") {}

absl::optional<DeviceLender::Lent> DeviceLender::Lend(
    const memory::Bytes& piece) {
  if (!lends() || piece.size < memory::kMinDeviceBytes) return absl::nullopt;
  const absl::StatusOr<memory::SharedAllocation> shared = Share(piece);
  base::MutexLock lock(&mu_);
  if (!lends()) return absl::nullopt;
  const absl::Status passed =
      shared.ok() ? PassLocked(*shared) : shared.status();
  reason_ = std::string(passed.message());
  if (!passed.ok()) return absl::nullopt;
  Passed& allocation = passed_[shared->id];
  // Marks the allocation as used. Also marks declined allocations, which are
  // retried only after a long time without use.
  allocation.last_used = base::SteadyNow();
  if (allocation.is_declined) {
    reason_ = kDeclined;
    return absl::nullopt;
  }
  return Lent{*allocation.segment_id, shared->offset, allocation.segment_id};
}

absl::StatusOr<memory::SharedAllocation> DeviceLender::Share(
    const memory::Bytes& piece) const {
  if (piece.device != devices_) {
    return absl::FailedPreconditionError("the memory is of other devices");
  }
  absl::StatusOr<memory::SharedAllocation> shared =
      piece.device->Share(piece.span());
  if (!shared.ok()) return shared.status();
  if (shared->handle.empty() ||
      shared->handle.size() > memory::kMaxDeviceHandleBytes ||
      shared->offset > shared->size ||
      piece.size > shared->size - shared->offset) {
    return absl::InternalError("the device gave the memory an invalid name");
  }
  return shared;
}

absl::Status DeviceLender::PassLocked(const memory::SharedAllocation& shared) {
  const auto passed = passed_.find(shared.id);
  if (passed != passed_.end()) {
    if (passed->second.size == shared.size) return absl::OkStatus();
    return absl::InternalError("the device gave two allocations the same name");
  }
  if (!IsDeviceId(next_segment_id_)) {
    return absl::ResourceExhaustedError(
        "all numbers of allocations are used up");
  }
  absl::Status room = MakeRoomLocked(shared.size);
  if (!room.ok()) return room;
  absl::Status sent = SendAbout(socket_, SetupMessage::Kind::kDevice,
                                next_segment_id_, shared.size, shared.handle);
  if (!sent.ok()) return sent;
  passed_bytes_ += shared.size;
  Passed& added = passed_[shared.id];
  added.size = shared.size;
  added.segment_id = std::make_shared<const uint32_t>(next_segment_id_++);
  added.memory = shared.memory;
  added.use = shared.use;
  CountLocked();
  return absl::OkStatus();
}

absl::Status DeviceLender::MakeRoomLocked(uint64_t size) {
  if (size > kMaxPassedDeviceBytes) {
    return absl::ResourceExhaustedError("the allocation is too large");
  }
  const absl::Time since = base::SteadyNow() - kDeviceKeepTime;
  while (passed_.size() >= kMaxPassedDevices ||
         size > kMaxPassedDeviceBytes - passed_bytes_) {
    const auto oldest = FindOldestLocked();
    if (oldest == passed_.end() || oldest->second.last_used > since) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the peer still reads ", passed_.size(),
                       " allocations of devices' memory, or did just now"));
    }
    TakeBackLocked(oldest);
  }
  SendTakeBacksLocked();
  // Counts open allocations in the same way as the peer: includes allocations
  // that the peer still has to close.
  if (passed_.size() + closing_.size() < kMaxPassedDevices &&
      size <= kMaxPassedDeviceBytes - passed_bytes_ - closing_bytes_) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("the peer is still to close ",
                                             closing_.size(), " allocations"));
}

DeviceLender::PassedById::iterator DeviceLender::FindOldestLocked() {
  auto oldest = passed_.end();
  for (auto it = passed_.begin(); it != passed_.end(); ++it) {
    if (it->second.is_lent()) continue;
    if (oldest == passed_.end() ||
        it->second.last_used < oldest->second.last_used) {
      oldest = it;
    }
  }
  return oldest;
}

void DeviceLender::TakeBackLocked(PassedById::iterator passed) {
  Passed& ended = passed->second;
  to_take_back_.push_back(*ended.segment_id);
  Closing& closing = closing_[*ended.segment_id];
  closing.size = ended.size;
  closing.memory = std::move(ended.memory);
  closing.segment_id = std::move(ended.segment_id);
  closing_bytes_ += ended.size;
  passed_bytes_ -= ended.size;
  passed_.erase(passed);
}

void DeviceLender::SendTakeBacksLocked() {
  while (!to_take_back_.empty() &&
         SendAbout(socket_, SetupMessage::Kind::kTakeBack, to_take_back_.back(),
                   0, "")
             .ok()) {
    to_take_back_.pop_back();
  }
  CountLocked();
}

void DeviceLender::CountLocked() {
  count_.store(passed_.size() + closing_.size(), std::memory_order_relaxed);
}

absl::Status DeviceLender::Decline(uint32_t segment_id) {
  base::MutexLock lock(&mu_);
  // Accepts any number that was passed, even if its allocation was taken back
  // meanwhile. (The next number has no device bit only after all numbers were
  // used.)
  if (IsDeviceId(next_segment_id_) && segment_id >= next_segment_id_) {
    return absl::InvalidArgumentError(
        "the peer declines an allocation that it was not passed");
  }
  for (auto& passed : passed_) {
    if (*passed.second.segment_id != segment_id) continue;
    if (std::exchange(passed.second.is_declined, true)) return absl::OkStatus();
  }
  if (++declined_ >= kMaxDeclinedDevices) StopLocked(kDeclined);
  return absl::OkStatus();
}

absl::Status DeviceLender::OnClosed(uint32_t segment_id) {
  base::MutexLock lock(&mu_);
  // Withdraws the allocation now, if it was not withdrawn before: a peer
  // without an endpoint closes allocations on its own.
  for (auto it = passed_.begin(); it != passed_.end(); ++it) {
    if (*it->second.segment_id != segment_id) continue;
    TakeBackLocked(it);
    break;
  }
  const auto closed = closing_.find(segment_id);
  if (closed == closing_.end() || closed->second.is_closed) {
    return absl::InvalidArgumentError(
        "the peer closes an allocation that is not open");
  }
  const auto untold =
      std::find(to_take_back_.begin(), to_take_back_.end(), segment_id);
  if (untold != to_take_back_.end()) to_take_back_.erase(untold);
  closed->second.is_closed = true;
  FreeClosedLocked(/*patience=*/std::numeric_limits<int>::max());
  CountLocked();
  return absl::OkStatus();
}

void DeviceLender::FreeClosedLocked(int patience) {
  for (auto it = closing_.begin(); it != closing_.end();) {
    Closing& closing = it->second;
    if (closing.is_lent() ||
        (!closing.is_closed && closing.looks <= patience)) {
      ++it;
      continue;
    }
    FreeAside(std::move(closing.memory));
    closing_bytes_ -= closing.size;
    it = closing_.erase(it);
  }
}

void DeviceLender::StopUnheard() {
  base::MutexLock lock(&mu_);
  StopLocked("nothing more is received from the set-up socket");
}

void DeviceLender::End() {
  base::MutexLock lock(&mu_);
  StopLocked("the peer hung up");
  for (auto& passed : passed_) FreeAside(std::move(passed.second.memory));
  for (auto& closing : closing_) FreeAside(std::move(closing.second.memory));
  passed_.clear();
  passed_bytes_ = 0;
  closing_.clear();
  closing_bytes_ = 0;
  to_take_back_.clear();
  CountLocked();
}

void DeviceLender::StopLocked(absl::string_view reason) {
  // Keeps the first reason, because it is the most specific.
  if (lends()) reason_ = std::string(reason);
  lends_.store(false, std::memory_order_relaxed);
}

void DeviceLender::TakeBackIdle(absl::Time now) {
  base::MutexLock lock(&mu_);
  for (auto it = passed_.begin(); it != passed_.end();) {
    const auto passed = it++;
    if (passed->second.is_lent()) {
      passed->second.last_used = now;
    } else if (passed->second.is_dropped() ||
               now - passed->second.last_used >= kDeviceIdleTime) {
      TakeBackLocked(passed);
    }
  }
  FreeClosedLocked(/*patience=*/std::numeric_limits<int>::max());
  SendTakeBacksLocked();
}

void DeviceLender::TakeBackUnused(int patience) {
  base::MutexLock lock(&mu_);
  StopLocked("the connection ends");
  for (auto it = passed_.begin(); it != passed_.end();) {
    const auto passed = it++;
    if (!passed->second.is_lent()) TakeBackLocked(passed);
  }
  for (auto& closing : closing_) ++closing.second.looks;
  FreeClosedLocked(patience);
  SendTakeBacksLocked();
}

std::string DeviceLender::Describe() const {
  base::MutexLock lock(&mu_);
  if (reason_.empty()) return "devices' memory in place";
  return absl::StrCat("devices' memory copied: ", reason_);
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
