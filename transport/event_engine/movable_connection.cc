#include "transport/event_engine/movable_connection.h"

#include "absl/strings/str_cat.h"
#include "transport/event_engine/slices.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace event_engine {
namespace {

// Limits the time in which an ended connection sends its last bytes. Longer
// than the time after which a hung RDMA network fails and TCP sends the bytes
// instead.
constexpr absl::Duration kDepartureLimit = absl::Seconds(10);

// Limits the polls of a path at an event of TCP, and at the end. An honest peer
// has fewer packets on the path (kMaxKeptPackets).
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
  // Passes the callbacks to the crew, one of whose threads runs them next. This
  // thread can thus poll again.
  ~Section() {
    connection_->mu_.AssertHeld();
    connection_->SettleLocked(&ended_);
    const std::vector<memory::Payload> released =
        connection_->stream_.TakeReleased();
    const bool has_departed =
        connection_->is_departing() && !connection_->HasBytesToSendLocked();
    connection_->mu_.Unlock();
    for (EndedOperation& operation : ended_) {
      if (operation.callback == nullptr) continue;
      connection_->crew_->Run([callback = std::move(operation.callback),
                               status = std::move(operation.status)]() mutable {
        callback(status);
      });
    }
    if (has_departed) connection_->End();
  }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  Ended* ended() { return &ended_; }

 private:
  MovableConnection* const connection_;
  Ended ended_;
};

MovableConnection::MovableConnection(std::unique_ptr<Endpoint> tcp, Crew* crew,
                                     bool is_client, bool requires_path,
                                     std::string peer)
    : crew_(crew),
      is_client_(is_client),
      requires_path_(requires_path),
      peer_(std::move(peer)),
      tcp_(std::move(tcp)),
      handshake_(is_client) {}

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

void MovableConnection::AwaitTls(std::string name, OnTls on_tls) {
  base::MutexLock lock(&mu_);
  path_name_ = std::move(name);
  on_tls_ = std::move(on_tls);
  stream_.FollowRecords();
}

void MovableConnection::CheckHandshakeLocked() {
  const TlsHandshake::State state = handshake_.state();
  if (on_tls_ == nullptr || state == TlsHandshake::State::kInProgress) return;
  awaits_path_ = requires_path_;
  absl::StatusOr<std::string> opening = handshake_.opening();
  if (state == TlsHandshake::State::kOther) {
    stream_.IgnoreRecords();
    opening = absl::UnavailableError(
        "without TLS, the peer's RDMA address cannot prove that it is the "
        "peer");
  }
  crew_->Run([on_tls = std::exchange(on_tls_, nullptr),
              opening = std::move(opening)] { on_tls(opening); });
}

void MovableConnection::NoteWrittenLocked(SliceBuffer* bytes) {
  if (!stream_.follows_records()) return;
  for (size_t i = 0; i < bytes->Count(); ++i) {
    const auto slice = bytes->RefSlice(i);
    const absl::Span<const uint8_t> span(slice.data(), slice.size());
    stream_.NoteWritten(span);
    if (on_tls_ != nullptr) handshake_.OnSent(span);
  }
  CheckHandshakeLocked();
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
             if (self != nullptr) (void)self->OnPath(std::move(path));
           });
}

absl::Status MovableConnection::OnPath(
    absl::StatusOr<std::unique_ptr<fabric::Endpoint>> path) {
  Section section(this);
  mu_.AssertHeld();
  if (tcp_ == nullptr || !failure_.ok()) return failure_;
  const absl::Status used =
      path.ok() ? UsePathLocked(*std::move(path)) : path.status();
  if (!used.ok()) {
    why_no_path_ = std::string(used.message());
    was_not_met_ = is_client_ && !has_heard_;
    stream_.IgnoreRecords();
    if (awaits_path_) FailLocked(RequiredButNotUsed(used));
    return used;
  }
  awaits_path_ = false;
  return used;
}

absl::Status MovableConnection::UsePathLocked(
    std::shared_ptr<fabric::Endpoint> path) {
  if (stream_.path() != nullptr) return absl::OkStatus();
  std::weak_ptr<MovableConnection> weak = weak_from_this();
  absl::StatusOr<std::unique_ptr<PathWatch>> watch =
      PathWatch::Create(crew_, path, [weak] {
        std::shared_ptr<MovableConnection> self = weak.lock();
        return self != nullptr && self->PollPath();
      });
  // A path that cannot be watched is not used. Without this side's greeting,
  // the peer stays on TCP.
  if (!watch.ok()) return watch.status();
  watch_ = *std::move(watch);
  nudges_ = 0;
  stream_.MoveTo(std::move(path));
  return absl::OkStatus();
}

// Ends the connection. A connection that has failed before ends immediately,
// because its peer or its TCP connection is gone.
void MovableConnection::Close() {
  {
    Section section(this);
    mu_.AssertHeld();
    const bool has_failed = !failure_.ok();
    FailLocked(absl::CancelledError("the endpoint was destroyed"));
    // Determines if the path was lost with bytes that it had accepted.
    if (!has_failed) PollUntilEmptyLocked();
    if (stream_.has_lost_path()) LeavePathLocked();
    absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
    if (!has_failed && loop.ok() && HasBytesToSendLocked()) {
      departing_self_ = shared_from_this();
      for (Callback& done : writer_.TakeCallbacks()) {
        section.ended()->push_back({std::move(done), failure_, {}});
      }
      (*loop)->RunAfter(kDepartureLimit, [weak = weak_from_this()] {
        std::shared_ptr<MovableConnection> self = weak.lock();
        if (self != nullptr) self->End();
      });
      return;
    }
  }
  End();
}

// Relies on the path's watch: IsDrained() changes only while the path is
// polled. Ignores control packets: otherwise a peer that gRPC did not trust
// after TLS's handshake could keep a path for the time of a departure.
bool MovableConnection::HasBytesToSendLocked() {
  if (writer_.has_accepted_bytes()) return true;
  const std::shared_ptr<fabric::Endpoint>& path = stream_.path();
  return path != nullptr && watch_ != nullptr && !stream_.has_lost_path() &&
         stream_.error().ok() && stream_.has_unacknowledged() &&
         !path->IsDrained();
}

void MovableConnection::End() {
  memory::Payload unsent;
  std::unique_ptr<Endpoint> tcp;
  std::unique_ptr<PathWatch> watch;
  std::unique_ptr<fabric::PendingConnect> attempt;
  Seek seek;
  OnTls on_tls;
  std::shared_ptr<MovableConnection> self;
  {
    Section section(this);
    mu_.AssertHeld();
    on_tls = std::exchange(on_tls_, nullptr);
    self = std::exchange(departing_self_, nullptr);
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

bool MovableConnection::PollUntilEmptyLocked() {
  for (int polls = 0; polls < kMostPolls; ++polls) {
    if (!stream_.Poll()) return true;
  }
  return false;
}

void MovableConnection::OnTcpRead(const absl::Status& status) {
  Section section(this);
  mu_.AssertHeld();
  reads_tcp_ = false;
  TakeTcpLocked(status);
}

// Polls the path before interpreting TCP's bytes, because their meaning depends
// on whether the peer has moved. After TCP's end, the poll returns all bytes
// that the peer has sent over the path.
void MovableConnection::TakeTcpLocked(const absl::Status& status) {
  if (!PollUntilEmptyLocked()) {
    return FailLocked(absl::ResourceExhaustedError(
        "the peer sends without end over the path"));
  }
  if (!status.ok()) return FailLocked(status);
  if (stream_.has_lost_path()) {
    LeavePathLocked();
    if (requires_path_) return;
  }
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
    if (on_tls_ != nullptr) handshake_.OnReceived({piece.data, piece.size});
    stream_.OnTcp(piece);
  }
  CheckHandshakeLocked();
  // Continues without waiting for further bytes, because the peer's mark was
  // among these bytes.
  if (!stream_.has_lost_path()) return;
  LeavePathLocked();
  if (requires_path_) stream_.Take();  // came over TCP, after the mark
  GoOnWithoutPathLocked();
}

void MovableConnection::OnTcpWritten(const absl::Status& status) {
  TcpWriter::Item item;
  {
    Section section(this);
    mu_.AssertHeld();
    item = writer_.Finish();
    if (!status.ok()) {
      FailLocked(status);
      DropWritesLocked(section.ended());
    }
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
  description.closed = tcp_ == nullptr || is_departing();
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
