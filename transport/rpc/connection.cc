#include "transport/rpc/connection.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/log.h"
#include "transport/base/steady_time.h"
#include "transport/connection/session_setup.h"
#include "transport/paths/path_relief.h"
#include "transport/rpc/head.h"

namespace penstock {
namespace rpc {
namespace {

session::Config SessionConfig(const Connection::Config& config,
                              const paths::SidePaths& side_paths) {
  session::Config result = connection::SessionConfig(
      config.settings, config.is_client, config.version, side_paths);
  result.max_receive_bytes = config.max_receive_bytes;
  result.max_streams = config.max_streams;
  result.max_metadata_bytes = kMaxHeadBytes;
  return result;
}

constexpr uint64_t kKeepalivePing = 0;

// What one turn reads of a socket, so that others get theirs.
constexpr size_t kReadBytes = 256 * 1024;
constexpr int kReadsPerTurn = 4;

}  // namespace

Connection::Section::Section(Connection* connection, Entry entry)
    : connection_(connection), entry_(entry) {
  connection_->Ref();
  connection_->mu_.lock();
}

std::shared_ptr<Connection> Connection::Create(const Config& config,
                                               progress::EventLoop* loop,
                                               base::UniqueFd socket,
                                               std::shared_ptr<Events> events) {
  paths::PathRelief::Get()->OnConnection();
  auto* connection =
      new Connection(config, loop, std::move(socket), std::move(events));
  std::shared_ptr<Connection> result = connection->Share();
  connection->Unref();  // the constructor's
  return result;
}

Connection::Connection(const Config& config, progress::EventLoop* loop,
                       base::UniqueFd socket, std::shared_ptr<Events> events)
    : config_(config),
      loop_(loop),
      events_(std::move(events)),
      socket_(std::move(socket)),
      side_paths_(config.settings, /*is_private=*/false, /*devices=*/nullptr),
      lifeline_(new fabric::tcp::Endpoint(&socket_)),
      session_(std::make_unique<session::Session>(
          SessionConfig(config_, side_paths_),
          std::unique_ptr<fabric::Endpoint>(lifeline_), this)),
      poller_(this),
      hello_timer_(loop),
      settle_timer_(loop),
      keepalive_timer_(loop),
      heartbeat_timer_(loop),
      retry_timer_(loop),
      linger_timer_(loop),
      keepalive_(config.keepalive, base::SteadyNow()),
      heartbeat_(connection::MakeHeartbeat(config.settings, config.keepalive)),
      counted_(this) {}

void Connection::Unref() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

std::shared_ptr<Connection> Connection::Share() {
  Ref();
  return std::shared_ptr<Connection>(
      this, [](Connection* connection) { connection->Unref(); });
}

void Connection::Start(absl::string_view received) {
  Section section(this);
  if (session_->closed()) return;
  std::shared_ptr<Connection> self = Share();
  watched_events_ = EPOLLIN;
  absl::StatusOr<progress::EventLoop::Id> watch =
      loop_->Watch(socket_.fd(), watched_events_,
                   [self](uint32_t events) { self->OnSocket(events); });
  if (!watch.ok()) return session_->Close(watch.status());
  watch_ = *watch;
  if (!config_.is_client) {
    side_paths_.Listen(session_->config().offers, session_->config().token,
                       OnSidePath());
  }
  session_->Start();
  StartTimer(&hello_timer_, connection::kHelloLimit, &Connection::OnHelloTimer);
  StartKeepaliveTimer();
  lifeline_->OnBytes(
      {reinterpret_cast<const uint8_t*>(received.data()), received.size()});
}

void Connection::FinishAndUnlock(Entry entry) {
  AcceptOpened();
  SyncHeartbeat();
  session_->Flush();
  PumpSocket();
  ObserveKeepalive();
  SyncPath();
  if (session_->closed()) session_->Flush();  // lets go of the path
  SyncSettleTimer();
  EndWhenWritten();
  SyncWatch();
  std::vector<std::function<void()>> callbacks;
  if (entry == Entry::kInput && loop_->IsCurrent()) callbacks.swap(later_);
  // Under the lock, which keeps them in order.
  for (std::function<void()>& callback : later_) {
    loop_->Post(std::move(callback));
  }
  later_.clear();
  mu_.unlock();
  for (std::function<void()>& callback : callbacks) {
    callback();
    callback = nullptr;
  }
  Unref();  // the Section's reference, perhaps the last one
}

// Calls `expired` under the lock.
void Connection::StartTimer(LoopTimer* timer, absl::Duration delay,
                            void (Connection::*expired)()) {
  std::shared_ptr<Connection> self = Share();
  timer->Start(delay, [self, timer, expired](uint64_t start) {
    Section section(self.get(), Entry::kInput);
    if (timer->TakeExpired(start)) ((*self).*expired)();
  });
}

void Connection::OnSocket(uint32_t events) {
  std::shared_ptr<fabric::Endpoint> path;
  {
    Section section(this, Entry::kInput);
    if (socket_ended_) return;
    // The end of a stream is seen by reading, even where nothing is to be read.
    if ((events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) ReadSocket();
    path = session_->fast_path();
  }
  // A doorbell has rung for what is there.
  if (path != nullptr && path->HasInput()) SchedulePolling();
}

void Connection::ReadSocket() {
  static thread_local std::unique_ptr<uint8_t[]> buffer(
      new uint8_t[kReadBytes]);
  for (int i = 0; i < kReadsPerTurn; ++i) {
    const absl::StatusOr<absl::Span<const uint8_t>> got =
        socket_.Read({buffer.get(), kReadBytes});
    if (!got.ok()) return OnSocketBroken(got.status());
    if (got->empty()) return;
    // After its end a session reads on, so that the peer gets the rest of it.
    if (!session_->closed()) lifeline_->OnBytes(*got);
    if (got->size() < kReadBytes || !session_->reads()) return;
  }
}

void Connection::PumpSocket() {
  while (!socket_ended_) {
    const absl::StatusOr<bool> ended = socket_.Pump();
    if (!ended.ok()) return OnSocketBroken(ended.status());
    if (!*ended) return;
    lifeline_->OnWritten();
  }
}

void Connection::OnSocketBroken(const absl::Status& cause) {
  // The peer may have sent the reason over the fast path.
  session_->DrainFastPath();
  lifeline_->OnClosed(cause);
  EndSocket();
}

void Connection::EndSocket() {
  if (std::exchange(socket_ended_, true)) return;
  linger_timer_.Cancel();
  // Calls that wait for an answer keep the connection, but nothing of these.
  if (watch_ != 0) {  // begun
    loop_->Unwatch(std::exchange(watch_, 0));
    lifeline_->OnClosed(absl::UnavailableError("the connection has ended"));
  }
  socket_.Close();
}

void Connection::EndWhenWritten() {
  if (!session_->closed() || socket_ended_) return;
  if (lifeline_->idle()) return EndSocket();
  if (!linger_timer_.pending()) {
    StartTimer(&linger_timer_, connection::kLingerLimit,
               &Connection::EndSocket);
  }
}

// Does not read while the peer leaves our answers unread.
void Connection::SyncWatch() {
  if (socket_ended_) return;
  uint32_t events = 0;
  if (session_->closed() || session_->reads()) events |= EPOLLIN;
  if (socket_.writing()) events |= EPOLLOUT;
  if (events == watched_events_) return;
  watched_events_ = events;
  loop_->SetEvents(watch_, events);
}

void Connection::OnHelloTimer() {
  if (session_->greeted()) return;
  session_->Close(connection::NoHelloError());
}

void Connection::SyncSettleTimer() {
  if (!session_->negotiates_path() || settle_timer_.pending()) return;
  settle_epoch_ = session_->path_epoch();
  StartTimer(&settle_timer_, connection::kSettleLimit,
             &Connection::OnSettleTimer);
}

void Connection::OnSettleTimer() {
  if (!session_->negotiates_path()) return;
  // A later attempt has begun, and gets a timer of its own.
  if (settle_epoch_ != session_->path_epoch()) return;
  session_->Close(connection::NoPathError());
}

void Connection::ObserveKeepalive() {
  const session::Counters& counters = session_->counters();
  if (counters.inputs != inputs_seen_) {
    inputs_seen_ = counters.inputs;
    keepalive_.OnReceived(base::SteadyNow());
  }
  if (counters.stream_frames_sent != frames_seen_) {
    frames_seen_ = counters.stream_frames_sent;
    keepalive_.OnDataSent();
  }
}

void Connection::StartKeepaliveTimer() {
  if (!keepalive_.enabled()) return;
  const absl::Time now = base::SteadyNow();
  StartTimer(&keepalive_timer_, keepalive_.NextLook(now) - now,
             &Connection::OnKeepaliveTimer);
}

void Connection::OnKeepaliveTimer() {
  if (session_->closed()) return;
  switch (keepalive_.OnTimer(base::SteadyNow(), calls_ > 0)) {
    case connection::Keepalive::Action::kPeerIsDead:
      return session_->Close(absl::UnavailableError(
          absl::StrCat("the peer did not answer within ",
                       absl::FormatDuration(config_.keepalive.timeout))));
    case connection::Keepalive::Action::kPing:
      session_->SendPing(kKeepalivePing);
      break;
    case connection::Keepalive::Action::kNone:
      break;
  }
  StartKeepaliveTimer();
}

// Of a session in use, the timer is pending: the usual case.
void Connection::SyncHeartbeat() {
  if (heartbeat_timer_.pending() || !session_->using_fast_path()) return;
  switch (heartbeat_.OnUse(session_->counters())) {
    case connection::Heartbeat::Action::kNone:
      return;
    case connection::Heartbeat::Action::kBeat:
      session_->RingLifeline();
      break;
    case connection::Heartbeat::Action::kStartTimer:
      break;
  }
  StartHeartbeatTimer();
}

void Connection::StartHeartbeatTimer() {
  StartTimer(&heartbeat_timer_, heartbeat_.interval(),
             &Connection::OnHeartbeatTimer);
}

void Connection::OnHeartbeatTimer() {
  if (!session_->using_fast_path()) return;
  if (!heartbeat_.OnTimer(session_->counters())) return;
  session_->RingLifeline();
  StartHeartbeatTimer();
}

uint32_t Connection::NextStream() {
  mu_.AssertHeld();
  if (next_stream_ == UINT32_MAX) {
    session_->Close(absl::UnavailableError(
        "the connection has carried as many calls as it can"));
    return next_stream_;
  }
  return next_stream_++;
}

void Connection::Close(const absl::Status& why) {
  Section section(this);
  session_->Close(why);
}

session::PathDescription Connection::DescribePath() {
  base::MutexLock lock(&mu_);
  return session_->DescribePath();
}

session::Counters Connection::counters() {
  base::MutexLock lock(&mu_);
  return session_->counters();
}

std::shared_ptr<metrics::Source> Connection::Keep() {
  int refs = refs_.load(std::memory_order_relaxed);
  do {
    if (refs == 0) return nullptr;
  } while (!refs_.compare_exchange_weak(refs, refs + 1));
  std::shared_ptr<Connection> share = Share();
  refs_.fetch_sub(1, std::memory_order_relaxed);  // the share has its own
  return share;
}

bool Connection::Describe(metrics::ConnectionInfo* info) {
  info->peer = config_.peer;
  base::MutexLock lock(&mu_);
  return session_->Describe(info);
}

void Connection::Collect(metrics::Snapshot* snapshot) {
  base::MutexLock lock(&mu_);
  session_->Collect(snapshot);
}

void Connection::OnClosed(const absl::Status& cause) {
  if (!absl::IsUnavailable(cause)) {  // not an ordinary end
    base::LogWarning(absl::StrCat("session with ", config_.peer,
                                  " ended: ", cause.ToString()));
  }
  hello_timer_.Cancel();
  settle_timer_.Cancel();
  keepalive_timer_.Cancel();
  heartbeat_timer_.Cancel();
  retry_timer_.Cancel();
  side_paths_.Cancel();
  config_.half_open = nullptr;
  opened_.clear();
  // Whoever listens may be what is calling.
  std::shared_ptr<Events> events = std::move(events_);
  events->OnClosed(this, cause);
  RunLater([events] {});
}

}  // namespace rpc
}  // namespace penstock
