#include "python/rpc/stream_state.h"

#include <utility>

#include "python/rpc/declined.h"
#include "python/rpc/reports.h"

namespace penstock::python {

StreamState::Ending StreamState::ChangeLocked() {
  monitor_.NotifyAll();
  const uint64_t number = std::exchange(change_number_, 0);
  has_changed_ = number == 0;
  if (number != 0) Reports::Get()->Add(number);
  if (is_finished_ || !HasEndedLocked()) return Ending();
  is_finished_ = true;
  Ending ending{number_, timer_};
  if (ending.number == 0 && IsDeclinedLocked()) ending.number = decline_number_;
  return ending;
}

void StreamState::Finish(const Ending& ending) {
  if (ending.number != 0) Reports::Get()->Add(ending.number);
  if (ending.timer == 0) return;
  const auto loop = progress::EventLoop::GetPolling(LoopPolling());
  if (loop.ok()) (*loop)->Cancel(ending.timer);
}

void StreamState::OnMessage(absl::optional<memory::Payload> message) {
  Ending ending;
  {
    MonitorLock lock(&monitor_);
    --reads_;
    // Drops messages that arrive after an end with an error.
    if (message.has_value() && !input_ended_) {
      reads_small_ = message->size() <= kSmallBytes;
      messages_.push_back(*std::move(message));
    } else {
      input_ended_ = true;
    }
    ending = ChangeLocked();
  }
  Finish(ending);
}

void StreamState::OnAccepted(bool is_accepted) {
  MonitorLock lock(&monitor_);
  --writes_;
  if (!is_accepted) output_ended_ = true;
  ChangeLocked();
}

void StreamState::OnMetadata(std::string metadata) {
  MonitorLock lock(&monitor_);
  metadata_ = std::move(metadata);
  ChangeLocked();
}

bool StreamState::End(rpc::End end, bool keeps_unread) {
  Ending ending;
  std::deque<memory::Payload> unread;  // destroyed outside the lock
  {
    MonitorLock lock(&monitor_);
    if (HasEndedLocked() || (end_.has_value() && end.status.ok())) return false;
    if (!keeps_unread) {
      input_ended_ = true;
      unread.swap(messages_);
    }
    output_ended_ = true;
    end_ = std::move(end);
    ending = ChangeLocked();
  }
  Finish(ending);
  return true;
}

int StreamState::TakeWantedReads() {
  MonitorLock lock(&monitor_);
  if (input_ended_) return 0;
  const int wanted = (reads_small_ ? kSmallReadAhead : kReadAhead) - reads_ -
                     static_cast<int>(messages_.size());
  if (wanted <= 0) return 0;
  reads_ += wanted;
  return wanted;
}

bool StreamState::HasMessage() {
  MonitorLock lock(&monitor_);
  return HasMessageLocked();
}

absl::optional<memory::Payload> StreamState::TakeMessage() {
  absl::optional<memory::Payload> message;
  Ending ending;
  {
    MonitorLock lock(&monitor_);
    if (messages_.empty()) return absl::nullopt;
    message = std::move(messages_.front());
    messages_.pop_front();
    if (HasEndedLocked()) ending = ChangeLocked();
  }
  Finish(ending);
  return message;
}

bool StreamState::HasRoom() {
  MonitorLock lock(&monitor_);
  return HasRoomLocked();
}

bool StreamState::BeginWrite(size_t bytes) {
  MonitorLock lock(&monitor_);
  if (output_ended_) return false;
  writes_small_ = bytes <= kSmallBytes;
  ++writes_;
  return true;
}

bool StreamState::AwaitMessage(absl::Time deadline) {
  return monitor_.WaitUntil(deadline, [this] {
    monitor_.AssertHeld();
    return HasMessageLocked();
  });
}

bool StreamState::AwaitRoom(absl::Time deadline) {
  return monitor_.WaitUntil(deadline, [this] {
    monitor_.AssertHeld();
    return HasRoomLocked();
  });
}

bool StreamState::AwaitMetadata(absl::Time deadline) {
  return monitor_.WaitUntil(deadline, [this] {
    monitor_.AssertHeld();
    return HasMetadataLocked();
  });
}

bool StreamState::AwaitEnd(absl::Time deadline) {
  return monitor_.WaitUntil(deadline, [this] {
    monitor_.AssertHeld();
    return HasEndedLocked();
  });
}

bool StreamState::is_open() {
  MonitorLock lock(&monitor_);
  return !output_ended_;
}

bool StreamState::has_ended() {
  MonitorLock lock(&monitor_);
  return HasEndedLocked();
}

bool StreamState::has_metadata() {
  MonitorLock lock(&monitor_);
  return HasMetadataLocked();
}

absl::optional<std::string> StreamState::metadata() {
  MonitorLock lock(&monitor_);
  return metadata_;
}

rpc::End StreamState::end() {
  MonitorLock lock(&monitor_);
  return end_.value_or(rpc::End());
}

void StreamState::Report(uint64_t number) {
  {
    MonitorLock lock(&monitor_);
    number_ = number;
    if (!is_finished_) return;
  }
  Reports::Get()->Add(number);
}

void StreamState::ReportChange(uint64_t number) {
  MonitorLock lock(&monitor_);
  if (std::exchange(has_changed_, false)) {
    Reports::Get()->Add(number);
  } else {
    change_number_ = number;
  }
}

bool StreamState::IsDeclinedLocked() const {
  return HasEndedLocked() && end_->status.ok() && IsDeclined(end_->metadata);
}

void StreamState::ReportDecline(uint64_t number) {
  {
    MonitorLock lock(&monitor_);
    decline_number_ = number;
    if (number_ != 0 || !IsDeclinedLocked()) return;
  }
  Reports::Get()->Add(number);
}

void StreamState::ExpireAfter(absl::Duration timeout,
                              std::function<void()> expire) {
  const auto loop = progress::EventLoop::GetPolling(LoopPolling());
  if (!loop.ok()) return;
  const progress::EventLoop::Id timer =
      (*loop)->RunAfter(timeout, std::move(expire));
  {
    MonitorLock lock(&monitor_);
    timer_ = timer;
    if (!is_finished_) return;
  }
  (*loop)->Cancel(timer);
}

}  // namespace penstock::python
