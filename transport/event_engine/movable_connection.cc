#include "transport/event_engine/movable_connection.h"

#include "absl/strings/str_cat.h"
#include "transport/event_engine/slices.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace event_engine {
namespace {

// Limit the attempts to ring a peer whose doorbell has not arrived yet, and the
// pause between them. A doorbell arrives right after the path's set-up.
constexpr int kMaxNudges = 200;
constexpr absl::Duration kNudgePause = absl::Milliseconds(1);

}  // namespace

class MovableConnection::Section {
 public:
  explicit Section(MovableConnection* connection) : connection_(connection) {
    connection_->mu_.Lock();
  }
  // Gives the callbacks to the crew, so that this thread can poll again. If
  // this thread belongs to the crew, it runs them next.
  ~Section() {
    connection_->mu_.AssertHeld();
    connection_->SettleLocked(&ended_);
    const std::vector<memory::Payload> released =
        connection_->stream_.TakeReleased();
    connection_->mu_.Unlock();
    for (EndedOperation& operation : ended_) {
      if (operation.callback == nullptr) continue;
      connection_->crew_->Run([callback = std::move(operation.callback),
                               status = std::move(operation.status)]() mutable {
        callback(status);
      });
    }
  }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  Ended* ended() { return &ended_; }

 private:
  MovableConnection* const connection_;
  Ended ended_;
};

MovableConnection::MovableConnection(std::unique_ptr<Endpoint> tcp, Crew* crew,
                                     bool is_client, std::string peer)
    : crew_(crew),
      is_client_(is_client),
      peer_(std::move(peer)),
      tcp_(std::move(tcp)) {}

MovableConnection::~MovableConnection() = default;

bool MovableConnection::Read(Callback on_read, SliceBuffer* buffer,
                             Endpoint::ReadArgs args) {
  Section section(this);
  mu_.AssertHeld();
  if (ReadNowLocked(buffer)) return true;
  on_read_ = std::move(on_read);
  read_buffer_ = buffer;
  read_args_ = args;
  ReadTcpLocked();
  ReadNowLocked(buffer);
  if (buffer->Length() == 0) return false;
  on_read_ = nullptr;
  return true;
}

bool MovableConnection::ReadNowLocked(SliceBuffer* buffer) {
  if (!stream_.has_due()) return false;
  AppendPayload(stream_.Take(), buffer);
  return true;
}

bool MovableConnection::Write(Callback on_written, SliceBuffer* data,
                              Endpoint::WriteArgs args) {
  TcpWriter::Item item;  // outlives the section, and may keep the bytes
  item.args = std::move(args);
  data->Swap(item.bytes);
  Section section(this);
  mu_.AssertHeld();
  if (stream_.on_path() && failure_.ok() && !stream_.has_lost_path()) {
    stream_.Write(TakePayload(&item.bytes));
    if (stream_.idle()) return true;
    on_written_ = std::move(on_written);
    return false;
  }
  stream_.CountWritten(item.bytes.Length());
  writer_.Push(std::move(item));
  WriteTcpLocked(section.ended());
  if (writer_.idle()) return true;
  writer_.SetLastDone(std::move(on_written));
  return false;
}

void MovableConnection::SeekPath(Seek seek, fabric::ConnectCallback found) {
  std::unique_ptr<fabric::PendingConnect> attempt = seek(std::move(found));
  base::MutexLock lock(&mu_);
  if (tcp_ == nullptr) return;
  seek_ = std::move(seek);
  ++seeks_;
  attempt_.swap(attempt);  // drops the former one without the lock
}

void MovableConnection::SeekAgain() {
  Seek seek;
  {
    base::MutexLock lock(&mu_);
    if (tcp_ == nullptr) return;
    seek = seek_;
  }
  std::weak_ptr<MovableConnection> weak = weak_from_this();
  SeekPath(std::move(seek),
           [weak](absl::StatusOr<std::unique_ptr<fabric::Endpoint>> path) {
             std::shared_ptr<MovableConnection> self = weak.lock();
             if (self != nullptr) self->OnPath(std::move(path));
           });
}

void MovableConnection::OnPath(
    absl::StatusOr<std::unique_ptr<fabric::Endpoint>> path) {
  Section section(this);
  mu_.AssertHeld();
  if (tcp_ == nullptr || !failure_.ok()) return;
  if (!path.ok()) {
    why_no_path_ = std::string(path.status().message());
    return;
  }
  UsePathLocked(*std::move(path));
}

void MovableConnection::UsePathLocked(std::shared_ptr<fabric::Endpoint> path) {
  if (stream_.path() != nullptr) return;
  std::weak_ptr<MovableConnection> weak = weak_from_this();
  absl::StatusOr<std::unique_ptr<PathWatch>> watch =
      PathWatch::Create(crew_, path, [weak] {
        std::shared_ptr<MovableConnection> self = weak.lock();
        return self != nullptr && self->PollPath();
      });
  if (!watch.ok()) {
    why_no_path_ = std::string(watch.status().message());
    return;  // without a greeting the peer does not move
  }
  watch_ = *std::move(watch);
  nudges_ = 0;
  stream_.MoveTo(std::move(path));
}

void MovableConnection::Close() {
  memory::Payload unsent;
  std::unique_ptr<Endpoint> tcp;
  std::unique_ptr<PathWatch> watch;
  std::unique_ptr<fabric::PendingConnect> attempt;
  Seek seek;
  {
    Section section(this);
    mu_.AssertHeld();
    FailLocked(absl::CancelledError("the endpoint was destroyed"));
    tcp = std::move(tcp_);
    watch = std::move(watch_);
    attempt = std::move(attempt_);
    seek = std::exchange(seek_, nullptr);
    if (stream_.path() != nullptr) {
      stream_.LosePath(absl::UnavailableError("closed"));
      unsent = stream_.LeavePath();
    }
  }
}

bool MovableConnection::PollPath() {
  Section section(this);
  mu_.AssertHeld();
  return stream_.Poll();
}

void MovableConnection::OnTcpRead(const absl::Status& status) {
  Section section(this);
  mu_.AssertHeld();
  reads_tcp_ = false;
  TakeTcpLocked(status);
}

// Polls the path before interpreting TCP's bytes, because these mean something
// else if the peer has moved. After TCP's end, the poll returns everything that
// the peer sent over the path.
void MovableConnection::TakeTcpLocked(const absl::Status& status) {
  while (stream_.Poll()) continue;
  if (!status.ok()) return FailLocked(status);
  if (stream_.has_lost_path()) LeavePathLocked();
  GoOnWithoutPathLocked();
  if (on_read_ != nullptr && read_buffer_->Length() == 0 &&
      stream_.IsPlain(tcp_input_.Length())) {
    stream_.CountReceived(tcp_input_.Length());
    read_buffer_->Swap(tcp_input_);
    return;
  }
  const memory::Payload input = TakePayload(&tcp_input_);
  tcp_input_.Clear();
  for (const memory::Bytes& piece : input.pieces()) stream_.OnTcp(piece);
}

void MovableConnection::OnTcpWritten(const absl::Status& status) {
  TcpWriter::Item item;
  {
    Section section(this);
    mu_.AssertHeld();
    item = writer_.Finish();
    if (!status.ok()) FailLocked(status);
  }
  if (item.done != nullptr) item.done(status);
}

void MovableConnection::FailLocked(const absl::Status& status) {
  if (failure_.ok()) failure_ = status;
}

// Repeats the steps until nothing is left, because a step may lose the path
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
  // Stops polling the path after a failure. Otherwise the path's input would
  // keep a thread awake until gRPC destroys the endpoint.
  if (!failure_.ok()) watch_.reset();
  if (stream_.on_path() && !announced_) {
    announced_ = true;
    LogPathLocked(absl::StrCat("shm (", stream_.path()->Describe(), ")"));
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
  TcpWriter::Item item;
  AppendPayload(stream_.LeavePath(), &item.bytes);
  item.done = std::move(on_written_);
  on_written_ = nullptr;
  if (item.bytes.Length() > 0 || item.done != nullptr) {
    writer_.Push(std::move(item));
  }
}

void MovableConnection::GoOnWithoutPathLocked() {
  if (!may_be_ending_) return;
  may_be_ending_ = false;
  if (std::exchange(was_announced_, false)) {
    LogPathLocked(absl::StrCat("http2: ", why_no_path_));
  }
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
  if (!failure_.ok()) {
    for (TcpWriter::Item& item : writer_.TakeWaiting()) {
      ended->push_back({std::move(item.done), failure_, std::move(item.bytes)});
    }
  }
  if (on_written_ == nullptr || (failure_.ok() && !stream_.idle())) return;
  ended->push_back({std::move(on_written_), failure_, {}});
  on_written_ = nullptr;
}

void MovableConnection::WriteTcpLocked(Ended* ended) {
  while (tcp_ != nullptr && failure_.ok() && writer_.is_ready()) {
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

void MovableConnection::Nudge() {
  Section section(this);
  mu_.AssertHeld();
  nudge_waits_ = false;
  stream_.Nudge();
}

void MovableConnection::LogPathLocked(const std::string& text) {
  log_.Info(absl::StrCat(is_client_ ? "connection to " : "connection from ",
                         peer_, ": ", text));
}

MovableConnection::Description MovableConnection::Describe() {
  base::MutexLock lock(&mu_);
  Description description;
  description.closed = tcp_ == nullptr;
  description.peer = peer_;
  description.path = announced_ && stream_.path() ? "shm" : "http2";
  if (description.path == "shm") {
    description.detail = stream_.path()->Describe();
  } else {
    description.reason = why_no_path_;
  }
  return description;
}

}  // namespace event_engine
}  // namespace penstock
