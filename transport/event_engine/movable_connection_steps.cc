// The steps after each event of a MovableConnection.

#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/event_engine/movable_connection.h"
#include "transport/event_engine/slices.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace event_engine {
namespace {

// The maximum number of repeated rings for a peer whose doorbell has not
// arrived, and the pause before each ring. A doorbell usually arrives right
// after the path's set-up.
constexpr int kMaxNudges = 200;
constexpr absl::Duration kNudgePause = absl::Milliseconds(1);

}  // namespace

// Repeats the steps until none has work left, because a step may lose the path
// after the step that handles losses. TCP must carry no other bytes before the
// mark.
void MovableConnection::SettleLocked(Ended* ended) {
  do {
    SettleOnceLocked(ended);
  } while (HasUnhandledEndLocked());
}

// Polls a dead path here, because the call that found it dead wakes no thread
// to poll it.
bool MovableConnection::HasUnhandledEndLocked() {
  if (stream_.path() != nullptr && stream_.path()->HasFailed()) stream_.Poll();
  return stream_.has_lost_path() || (!stream_.error().ok() && failure_.ok());
}

void MovableConnection::SettleOnceLocked(Ended* ended) {
  if (!stream_.error().ok()) FailLocked(stream_.error());
  if (stream_.has_lost_path()) LeavePathLocked();
  // Stops polling the path after a failure, unless the path still has bytes to
  // send. Otherwise unread input of the path would keep a thread awake, because
  // a failed stream accepts no input.
  if (!failure_.ok() && (!is_departing() || !stream_.error().ok())) {
    watch_.reset();
  }
  if (stream_.on_path() && !announced_) {
    announced_ = true;
    LogPathLocked(
        absl::StrCat(path_name_, " (", stream_.path()->Describe(), ")"));
  }
  ReadTcpLocked();
  SettleReadLocked(ended);
  SettleWriteLocked(ended);
  WriteTcpLocked(ended);
  RingLocked();
}

void MovableConnection::LeavePathLocked() {
  why_no_path_ = std::string(stream_.loss().message());
  may_be_ending_ = true;
  was_announced_ |= announced_;
  announced_ = false;
  watch_.reset();
  if (requires_path_) FailLocked(RequiredButNotUsed(stream_.loss()));
  TcpWriter::Item item;
  AppendPayload(stream_.LeavePath(), &item.bytes);
  item.has_accepted_bytes = item.bytes.Length() > 0 && !requires_path_;
  item.done = std::move(on_written_);
  on_written_ = nullptr;
  if (item.bytes.Length() > 0 || item.done != nullptr) {
    writer_.Push(std::move(item));
  }
}

void MovableConnection::GoOnWithoutPathLocked() {
  if (!failure_.ok()) return;
  const bool is_first = !std::exchange(has_heard_, true);
  if (is_first && was_not_met_) return SeekSoonLocked();
  if (!may_be_ending_) return;
  may_be_ending_ = false;
  if (std::exchange(was_announced_, false)) {
    LogPathLocked(absl::StrCat("http2: ", why_no_path_));
  }
  SeekSoonLocked();
}

void MovableConnection::SeekSoonLocked() {
  if (seek_ == nullptr || seeks_ == kMaxSeeks) return;
  crew_->Run([self = shared_from_this()] { self->SeekAgain(); });
}

void MovableConnection::SettleReadLocked(Ended* ended) {
  if (on_read_ == nullptr) return;
  ReadNowLocked(read_buffer_);
  const bool has_read = read_buffer_->Length() > 0;
  if (!has_read && failure_.ok()) return;
  ended->push_back(
      {std::move(on_read_), has_read ? absl::OkStatus() : failure_, {}});
  on_read_ = nullptr;
}

void MovableConnection::SettleWriteLocked(Ended* ended) {
  if (!MayWriteTcpLocked()) DropWritesLocked(ended);
  if (on_written_ == nullptr || (failure_.ok() && !stream_.idle())) return;
  ended->push_back({std::move(on_written_), failure_, {}});
  on_written_ = nullptr;
}

void MovableConnection::DropWritesLocked(Ended* ended) {
  for (TcpWriter::Item& item : writer_.TakeWaiting()) {
    ended->push_back({std::move(item.done), failure_, std::move(item.bytes)});
  }
}

void MovableConnection::WriteTcpLocked(Ended* ended) {
  while (tcp_ != nullptr && MayWriteTcpLocked() && writer_.is_ready()) {
    TcpWriter::Item item;
    const bool finished = writer_.StartNext(
        tcp_.get(),
        [self = shared_from_this()](absl::Status status) {
          self->OnTcpWritten(status);
        },
        &item);
    if (!finished) return;
    ended->push_back(
        {std::move(item.done), absl::OkStatus(), std::move(item.bytes)});
  }
}

// Reads TCP even while the path carries all bytes, because the end of TCP is
// the end of the connection. Reads more only once earlier bytes are consumed.
void MovableConnection::ReadTcpLocked() {
  while (tcp_ != nullptr && failure_.ok() && !reads_tcp_ &&
         !stream_.has_due() && stream_.error().ok()) {
    const bool waits = on_read_ != nullptr && read_buffer_->Length() == 0;
    if (!waits && stream_.path() == nullptr) return;
    reads_tcp_ = true;
    const bool now =
        tcp_->Read([self = shared_from_this()](
                       absl::Status status) { self->OnTcpRead(status); },
                   &tcp_input_, read_args_);
    if (!now) return;
    reads_tcp_ = false;
    TakeTcpLocked(absl::OkStatus());
  }
}

void MovableConnection::RingLocked() {
  const std::shared_ptr<fabric::Endpoint>& path = stream_.path();
  if (path == nullptr || !path->TakeDoorbellRequest()) return;
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (nudge_waits_) return;  // the waiting one rings for this packet, too
  if (++nudges_ > kMaxNudges || !loop.ok()) {
    return stream_.LosePath(absl::InternalError("the peer has no doorbell"));
  }
  nudge_waits_ = true;
  (*loop)->RunAfter(kNudgePause,
                    [self = shared_from_this()] { self->Nudge(); });
}

}  // namespace event_engine
}  // namespace penstock
