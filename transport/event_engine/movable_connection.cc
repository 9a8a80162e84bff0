#include "transport/event_engine/movable_connection.h"

#include "absl/strings/str_cat.h"
#include "transport/event_engine/slices.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace event_engine {
namespace {

// Limits the time in which the path of an ended connection sends its last
// bytes. Longer than a network needs, even if it has to repeat packets.
constexpr absl::Duration kDepartureLimit = absl::Seconds(2);

// Limits the polls of a path for one event of TCP. An honest peer's window
// takes fewer polls, even in the smallest packets that gRPC writes.
constexpr int kMostPolls = 64 * 1024;

}  // namespace

absl::Status RequiredButNotUsed(const absl::Status& why) {
  return absl::FailedPreconditionError(
      absl::StrCat("Penstock is required but not used: ", why.message()));
}

class MovableConnection::Section {
 public:
  explicit Section(MovableConnection* connection) : connection_(connection) {
    connection_->mu_.Lock();
  }
  // Gives the callbacks to the crew, so that this thread can poll again. A
  // thread of the crew runs the callbacks next.
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
  if (!stream_.has_due() || awaits_path_) return false;
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
  NoteWrittenLocked(&item.bytes);
  stream_.CountWritten(item.bytes.Length());
  writer_.Push(std::move(item));
  WriteTcpLocked(section.ended());
  if (writer_.idle()) return true;
  writer_.SetLastDone(std::move(on_written));
  return false;
}

void MovableConnection::AwaitTls(std::string name, bool is_required,
                                 OnTls on_tls) {
  base::MutexLock lock(&mu_);
  path_name_ = std::move(name);
  awaits_path_ = is_required;
  on_tls_ = std::move(on_tls);
  stream_.FollowRecords();
}

void MovableConnection::TakeOpeningLocked(absl::Span<const uint8_t> bytes) {
  if (on_tls_ == nullptr) return;
  opening_.Take(bytes);
  if (opening_.state() == TlsOpening::State::kIncomplete) return;
  absl::StatusOr<std::string> opening = opening_.bytes();
  if (opening_.state() == TlsOpening::State::kOther) {
    stream_.IgnoreRecords();
    opening = absl::UnavailableError(
        "without TLS, the peer's RDMA address cannot prove that it is the "
        "peer");
  }
  crew_->Run([on_tls = std::exchange(on_tls_, nullptr),
              opening = std::move(opening)] { on_tls(opening); });
}

// Looks at all bytes that a client writes, and so also at the first bytes of
// TLS.
void MovableConnection::NoteWrittenLocked(SliceBuffer* bytes) {
  if (!stream_.follows_records()) return;
  for (size_t i = 0; i < bytes->Count(); ++i) {
    const auto slice = bytes->RefSlice(i);
    const absl::Span<const uint8_t> span(slice.data(), slice.size());
    stream_.NoteWritten(span);
    if (is_client_) TakeOpeningLocked(span);
  }
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
    stream_.IgnoreRecords();
    if (awaits_path_) FailLocked(RequiredButNotUsed(path.status()));
    return;
  }
  awaits_path_ = false;
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
  {
    Section section(this);
    mu_.AssertHeld();
    FailLocked(absl::CancelledError("the endpoint was destroyed"));
    absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
    const std::shared_ptr<fabric::Endpoint>& path = stream_.path();
    if (path != nullptr && !stream_.has_lost_path() && loop.ok() &&
        !path->IsDrained()) {
      is_departing_ = true;
      (*loop)->RunAfter(kDepartureLimit,
                        [self = shared_from_this()] { self->End(); });
      return;
    }
  }
  End();
}

void MovableConnection::End() {
  memory::Payload unsent;
  std::unique_ptr<Endpoint> tcp;
  std::unique_ptr<PathWatch> watch;
  std::unique_ptr<fabric::PendingConnect> attempt;
  Seek seek;
  OnTls on_tls;
  {
    Section section(this);
    mu_.AssertHeld();
    on_tls = std::exchange(on_tls_, nullptr);
    is_departing_ = false;
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
  bool any = false;
  {
    Section section(this);
    mu_.AssertHeld();
    any = stream_.Poll();
    if (!is_departing_) return any;
    const std::shared_ptr<fabric::Endpoint>& path = stream_.path();
    const bool sends = path != nullptr && !stream_.has_lost_path() &&
                       stream_.error().ok() && !path->IsDrained();
    if (sends) return any;
  }
  End();
  return any;
}

void MovableConnection::OnTcpRead(const absl::Status& status) {
  Section section(this);
  mu_.AssertHeld();
  reads_tcp_ = false;
  TakeTcpLocked(status);
}

// Polls the path before interpreting TCP's bytes, because these bytes mean
// something else if the peer has moved. After TCP's end, the poll returns all
// bytes that the peer has sent over the path.
void MovableConnection::TakeTcpLocked(const absl::Status& status) {
  int polls = 0;
  while (stream_.Poll()) {
    if (++polls == kMostPolls) {
      return FailLocked(absl::ResourceExhaustedError(
          "the peer sends without end over the path"));
    }
  }
  if (!status.ok()) return FailLocked(status);
  if (stream_.has_lost_path()) LeavePathLocked();
  GoOnWithoutPathLocked();
  if (on_read_ != nullptr && read_buffer_->Length() == 0 && !awaits_path_ &&
      stream_.IsPlain(tcp_input_.Length())) {
    stream_.CountReceived(tcp_input_.Length());
    read_buffer_->Swap(tcp_input_);
    return;
  }
  const memory::Payload input = TakePayload(&tcp_input_);
  tcp_input_.Clear();
  for (const memory::Bytes& piece : input.pieces()) {
    if (!is_client_) TakeOpeningLocked({piece.data, piece.size});
    stream_.OnTcp(piece);
  }
  // Continues without waiting for further bytes, because these bytes contained
  // the peer's mark.
  if (!stream_.has_lost_path()) return;
  LeavePathLocked();
  GoOnWithoutPathLocked();
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
  description.closed = tcp_ == nullptr || is_departing_;
  description.peer = peer_;
  description.path = announced_ && stream_.path() ? path_name_ : "http2";
  if (description.path != "http2") {
    description.detail = stream_.path()->Describe();
  } else {
    description.reason = why_no_path_;
  }
  return description;
}

}  // namespace event_engine
}  // namespace penstock
