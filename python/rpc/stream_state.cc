#include "python/rpc/stream_state.h"

#include <utility>

#include "python/rpc/declined.h"
#include "python/rpc/reports.h"

namespace penstock::python {

void StreamState::OnMessage(absl::optional<memory::Payload> message) {
  MonitorLock lock(&monitor_);
  --reads_;
  // Drops messages that come after an end with an error.
  if (message.has_value() && !input_ended_) {
    messages_.push_back(*std::move(message));
  } else {
    input_ended_ = true;
  }
  monitor_.NotifyAll();
}

void StreamState::OnAccepted(bool is_accepted) {
  MonitorLock lock(&monitor_);
  --writes_;
  if (!is_accepted) output_ended_ = true;
  monitor_.NotifyAll();
}

void StreamState::OnMetadata(std::string metadata) {
  MonitorLock lock(&monitor_);
  metadata_ = std::move(metadata);
  monitor_.NotifyAll();
}

bool StreamState::End(rpc::End end) {
  uint64_t number = 0;
  progress::EventLoop::Id timer = 0;
  std::deque<memory::Payload> unread;  // destroyed outside the lock
  {
    MonitorLock lock(&monitor_);
    if (end_.has_value()) return false;
    // Messages that have come stay readable only if the peer has ended the
    // stream in order.
    if (!end.status.ok()) {
      input_ended_ = true;
      unread.swap(messages_);
    }
    output_ended_ = true;
    end_ = std::move(end);
    number = number_;
    if (number == 0 && IsDeclinedLocked()) number = decline_number_;
    timer = timer_;
    monitor_.NotifyAll();
  }
  if (number != 0) Reports::Get()->Add(number);
  if (timer == 0) return true;
  const auto loop = progress::EventLoop::GetPolling(LoopPolling());
  if (loop.ok()) (*loop)->Cancel(timer);
  return true;
}

int StreamState::TakeWantedReads() {
  MonitorLock lock(&monitor_);
  if (input_ended_) return 0;
  const int wanted = kReadAhead - reads_ - static_cast<int>(messages_.size());
  if (wanted <= 0) return 0;
  reads_ += wanted;
  return wanted;
}

bool StreamState::HasMessage() {
  MonitorLock lock(&monitor_);
  return HasMessageLocked();
}

absl::optional<memory::Payload> StreamState::TakeMessage() {
  MonitorLock lock(&monitor_);
  if (messages_.empty()) return absl::nullopt;
  memory::Payload message = std::move(messages_.front());
  messages_.pop_front();
  return message;
}

bool StreamState::BeginWrite() {
  MonitorLock lock(&monitor_);
  if (output_ended_) return false;
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
    return writes_ < kWriteAhead || output_ended_;
  });
}

bool StreamState::AwaitMetadata(absl::Time deadline) {
  return monitor_.WaitUntil(deadline, [this] {
    monitor_.AssertHeld();
    return metadata_.has_value() || end_.has_value();
  });
}

bool StreamState::AwaitEnd(absl::Time deadline) {
  return monitor_.WaitUntil(deadline, [this] {
    monitor_.AssertHeld();
    return end_.has_value();
  });
}

bool StreamState::is_open() {
  MonitorLock lock(&monitor_);
  return !output_ended_;
}

bool StreamState::has_ended() {
  MonitorLock lock(&monitor_);
  return end_.has_value();
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
    if (!end_.has_value()) return;
  }
  Reports::Get()->Add(number);
}

bool StreamState::IsDeclinedLocked() const {
  return end_.has_value() && end_->status.ok() && IsDeclined(end_->metadata);
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
    if (!end_.has_value()) return;
  }
  (*loop)->Cancel(timer);
}

}  // namespace penstock::python
