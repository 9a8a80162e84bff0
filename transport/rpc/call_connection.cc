#include "transport/rpc/call_connection.h"

#include <sys/epoll.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/log.h"
#include "transport/base/steady_time.h"
#include "transport/fabric/tcp/receive.h"
#include "transport/paths/path_relief.h"
#include "transport/session/refusal.h"

namespace penstock {
namespace rpc {
namespace {

// Caps the bytes that one turn reads from a socket, so that other sockets get a
// turn.
constexpr size_t kBytesPerTurn = 1024 * 1024;
// Limits how long a server that shuts down waits for a client to confirm that
// all its calls have been sent. gRPC has the same limit.
constexpr absl::Duration kDepartureLimit = absl::Seconds(20);

}  // namespace

std::shared_ptr<CallConnection> CallConnection::Create(
    const Config& config, progress::EventLoop* loop,
    std::shared_ptr<connection::Executor> executor, base::UniqueFd socket,
    std::shared_ptr<Events> events) {
  paths::PathRelief::Get()->OnConnection();
  auto* connection = new CallConnection(
      config, loop, std::move(executor),
      std::make_unique<fabric::tcp::Socket>(std::move(socket)),
      std::move(events));
  std::shared_ptr<CallConnection> result =
      connection->ShareAs<CallConnection>();
  connection->Unref();  // the constructor's reference
  connection->Register();
  return result;
}

CallConnection::CallConnection(const Config& config, progress::EventLoop* loop,
                               std::shared_ptr<connection::Executor> executor,
                               std::unique_ptr<fabric::tcp::Socket> socket,
                               std::shared_ptr<Events> events)
    : connection::Connection(config, std::move(executor), std::move(socket)),
      loop_(loop),
      recorded_client_(config.recorded_client),
      max_send_bytes_(config.max_send_bytes),
      socket_(static_cast<fabric::tcp::Socket*>(stream())),
      events_(std::move(events)),
      departure_(session_.get()),
      departure_timer_(this),
      callbacks_(this, &mu_, loop, config.callbacks) {}

void CallConnection::Start(absl::string_view received) {
  Section section(this);
  if (session_->closed()) return;
  std::shared_ptr<CallConnection> self = ShareAs<CallConnection>();
  watched_events_ = EPOLLIN;
  absl::StatusOr<progress::EventLoop::Id> watch =
      loop_->Watch(socket_->fd(), watched_events_,
                   [self](uint32_t events) { self->OnSocket(events); });
  if (!watch.ok()) return session_->Close(watch.status());
  watch_ = *watch;
  Begin(/*pinged=*/nullptr);
  lifeline_->OnBytes(
      {reinterpret_cast<const uint8_t*>(received.data()), received.size()});
}

void CallConnection::FinishAndUnlock(Entry entry) {
  AcceptOpened();
  CloseWhenDrained();
  Flush(base::SteadyNow);
  PumpSocket();
  Sync();
  if (session_->closed()) session_->Flush();  // releases the path
  SyncWatch();
  const bool runs = callbacks_.Begin(entry == Entry::kInput);
  mu_.unlock();
  if (runs) callbacks_.Run();
  Unref();  // the Section's reference, perhaps the last reference
}

absl::Status CallConnection::TooLarge(uint64_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("Received message larger than max (", bytes, " vs. ",
                   session()->config().max_receive_bytes, ")"));
}

absl::Status CallConnection::CheckSend(const memory::Payload& message) const {
  if (max_send_bytes_ < 0 ||
      message.size() <= static_cast<uint64_t>(max_send_bytes_)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("sent message larger than max (", message.size(), " vs. ",
                   max_send_bytes_, ")"));
}

void CallConnection::Drain(const absl::Status& why) {
  Section section(this);
  if (departure_.Begin(why)) {
    departure_timer_.Start(kDepartureLimit, [this] {
      mu_.AssertHeld();
      departure_.OnTimeLimit();
    });
  }
}

void CallConnection::CloseWhenDrained() {
  if (!departure_.gone() && !is_left_) return;
  if (session_->closed() || calls_ > 0 || !opened_.empty()) return;
  // Waits on a server that still has answers to send. A client never has.
  if (!is_client() && !session_->drained()) return;
  session_->Close(absl::UnavailableError("the server was stopped"));
}

void CallConnection::RefuseStream(uint32_t stream) {
  session_->output().SendReset(stream,
                               session::Refusal(absl::UnavailableError(
                                   "the server was stopped before this call")));
  session_->streams().Detach(stream);
}

void CallConnection::Close(const absl::Status& why) {
  Section section(this);
  session_->Close(why);
}

void CallConnection::Enter(absl::FunctionRef<void()> work) {
  Section section(this);
  work();
}

bool CallConnection::PollPath() {
  Section section(this, Entry::kInput);
  return session_->Poll();
}

void CallConnection::OnSocket(uint32_t events) {
  std::shared_ptr<fabric::Endpoint> path;
  {
    Section section(this, Entry::kInput);
    if (stream_ended()) return;
    // Reads on every event except EPOLLOUT, because only a read detects the end
    // of the stream.
    if ((events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) ReadSocket();
    path = session_->path().endpoint();
  }
  // Schedules a poll if the path has input: a doorbell may have announced it.
  if (path != nullptr && path->HasInput()) poller_.Schedule();
}

void CallConnection::ReadSocket() {
  for (size_t bytes = 0; bytes < kBytesPerTurn;) {
    // Reads even after the session has closed, because the peer must receive
    // the remaining output.
    const absl::StatusOr<size_t> got =
        session_->closed() ? socket_->Discard() : socket_->Receive(lifeline_);
    if (!got.ok()) return OnSocketBroken(got.status());
    // Stops if the socket is empty. Otherwise the loop calls this function
    // again, because the watch is level-triggered.
    if (*got < fabric::tcp::kLeastRoom || !session_->reads()) return;
    bytes += *got;
  }
}

void CallConnection::PumpSocket() {
  while (!stream_ended()) {
    const absl::StatusOr<bool> ended = socket_->Pump();
    if (!ended.ok()) return OnSocketBroken(ended.status());
    if (!*ended) return;
    lifeline_->OnWritten();
  }
}

void CallConnection::OnSocketBroken(const absl::Status& cause) {
  OnStreamClosed([&cause] { return cause; });
  EndNow();
}

void CallConnection::EndStream() {
  // Releases all resources here, because calls that still wait for an answer
  // keep the connection.
  if (watch_ != 0) {  // the connection was started
    loop_->Unwatch(std::exchange(watch_, 0));
    lifeline_->Break(absl::UnavailableError("the connection has ended"));
  }
  socket_->Close();
}

// Updates the watched events of the socket. Does not read while the peer leaves
// answers of this side unread.
void CallConnection::SyncWatch() {
  if (stream_ended()) return;
  uint32_t events = 0;
  if (session_->closed() || session_->reads()) events |= EPOLLIN;
  if (socket_->writing()) events |= EPOLLOUT;
  if (events == watched_events_) return;
  watched_events_ = events;
  loop_->SetEvents(watch_, events);
}

void CallConnection::OnPathChanged(
    const std::shared_ptr<fabric::Endpoint>& path) {
  for (progress::EventLoop::Id watch : path_watches_) loop_->Unwatch(watch);
  path_watches_.clear();
  if (path == nullptr) return;
  std::shared_ptr<CallConnection> self = ShareAs<CallConnection>();
  for (int fd : path->wakeup_fds()) {
    absl::StatusOr<progress::EventLoop::Id> watch =
        loop_->Watch(fd, EPOLLIN | EPOLLET,
                     [self, path](uint32_t) { self->poller_.OnWakeup(path); });
    if (watch.ok()) {
      path_watches_.push_back(*watch);
    } else {
      base::LogError("a path's input will be noticed late: " +
                     watch.status().ToString());
    }
  }
}

uint32_t CallConnection::NextStream() {
  mu_.AssertHeld();
  if (next_stream_ == UINT32_MAX) {
    session_->Close(absl::UnavailableError(
        "the connection has carried as many calls as it can"));
    return next_stream_;
  }
  return next_stream_++;
}

session::PathDescription CallConnection::DescribePath() {
  base::MutexLock lock(&mu_);
  return session_->path().Describe();
}

session::Counters CallConnection::counters() {
  base::MutexLock lock(&mu_);
  return session_->counters();
}

void CallConnection::OnStreamOpened(uint32_t stream) {
  mu_.AssertHeld();
  if (!departure_.OnStreamOpened(stream)) return RefuseStream(stream);
  opened_.push_back(stream);
  AcceptOpened();
}

void CallConnection::AcceptOpened() {
  if (opened_.empty() || !MayAccept()) return;
  std::vector<uint32_t> opened = std::move(opened_);
  opened_.clear();
  for (uint32_t stream : opened) {
    if (session_->closed()) return;
    if (MayAccept()) {
      events_->OnStream(this, stream);
    } else {
      opened_.push_back(stream);
    }
  }
}

void CallConnection::OnSettled(const absl::Status& status) {
  if (status.ok()) events_->OnSettled(this);
}

void CallConnection::OnGoaway(uint32_t, const absl::Status& status) {
  const absl::Status why = absl::UnavailableError(
      absl::StrCat("the peer is closing the connection: ", status.message()));
  if (!is_client()) return session_->Close(why);
  // Records that the client leaves. The client's answer to the ping after the
  // first GOAWAY tells the server that no call follows.
  if (!std::exchange(is_left_, true)) events_->OnLeaving(this, why);
}

// Fails, because this front end neither sends nor uses entries of metadata.
absl::Status CallConnection::OnEntry(uint32_t, absl::string_view) {
  return absl::InvalidArgumentError("the peer sent an entry of metadata");
}

void CallConnection::OnEnded(const absl::Status& cause) {
  opened_.clear();
  departure_timer_.Cancel();
  // Keeps the listener until the end of this function, because the listener may
  // be the caller.
  std::shared_ptr<Events> events = std::move(events_);
  events->OnClosed(this, cause);
  RunLater([events] {});
}

}  // namespace rpc
}  // namespace penstock
