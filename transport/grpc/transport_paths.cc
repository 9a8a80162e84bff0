// Fast paths: how the transport gets, polls, loses and retries them, and
// reports which path is used.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "transport/connection/path_policy.h"
#include "transport/connection/session_setup.h"
#include "transport/grpc/left_input.h"
#include "transport/grpc/transport.h"
#include "transport/paths/short_lives.h"

namespace penstock {
namespace core {
// Limits the time to agree on a path. Without that, a peer that does not answer
// would keep its HalfOpen::Place, or be served over a fabric that the
// policy forbids.
void Transport::SyncSettleTimer() {
  if (!session_->negotiates_path() || settle_timer_.pending()) return;
  settle_epoch_ = session_->path_epoch();
  StartTimer(&settle_timer_,
             grpc_core::Duration::Milliseconds(
                 absl::ToInt64Milliseconds(connection::kSettleLimit)),
             &Transport::OnSettleTimer);
}

void Transport::OnSettleTimer() {
  if (!session_->negotiates_path()) return;
  // A later attempt has begun, and gets a timer of its own.
  if (settle_epoch_ != session_->path_epoch()) return;
  session_->Close(connection::NoPathError());
}

bool Transport::PollPath() {
  // Deadlines of the calls that come count from now. The thread may have read
  // the clock long ago: before its process was stopped and continued.
  grpc_core::ExecCtx::Get()->InvalidateNow();
  Section section(this);
  return session_->Poll();
}

// Delivers all input after a doorbell, as perhaps no other thread polls.
// Between two bounded amounts, other closures of the ExecCtx run. After
// `portions` of them the thread goes on with other work, and leaves the rest.
void Transport::PollUntilEmpty(int portions) {
  std::shared_ptr<fabric::Endpoint> path;
  {
    base::MutexLock lock(&mu_);
    path = session_->fast_path();
  }
  if (path == nullptr || !path->HasInput()) return;
  PollPath();
  if (!path->HasInput()) return;
  if (portions > 1) {
    SchedulePolling(portions - 1);
  } else {
    LeaveInput();
  }
}

void Transport::SchedulePolling(int portions) {
  Ref();
  grpc_core::ExecCtx::Run(
      DEBUG_LOCATION,
      grpc_core::NewClosure([this, portions](grpc_error_handle) {
        PollUntilEmpty(portions);
        Unref();
      }),
      absl::OkStatus());
}

paths::SidePaths::Done Transport::OnSidePath() {
  std::shared_ptr<Transport> self = Share();
  const uint32_t epoch = session_->path_epoch();
  return [self, epoch](const std::string& fabric,
                       absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path) {
    self->AddSidePath(epoch, fabric, std::move(path));
  };
}

void Transport::AddSidePath(
    uint32_t epoch, const std::string& fabric,
    absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path) {
  grpc_core::ApplicationCallbackExecCtx callback_exec_ctx;
  grpc_core::ExecCtx exec_ctx;
  Section section(this);
  connection::EndAttempt(session_.get(), epoch, fabric, std::move(path));
}

// Adds the path to the PollSet, which arms it, before it starts the wakers.
void Transport::SyncPathPoller() {
  const std::shared_ptr<fabric::Endpoint>& path = session_->fast_path();
  if (path == woken_path_) return;  // the usual case
  poller_.Watch(path);
  woken_path_ = path;
  for (const auto& waker : wakers_) waker->Stop();
  wakers_.clear();
  if (path == nullptr || path->wakeup_fds().empty()) return;
  std::shared_ptr<Transport> self = Share();
  wakers_ = PathWaker::Start(path, [self] { self->OnPathWakeup(); });
}

bool Transport::MayGiveUpPath() const {
  return connection::ToleratesTcp(config_.settings);
}

void Transport::GiveUpPath(const absl::Status& why) {
  grpc_core::ApplicationCallbackExecCtx callback_exec_ctx;
  grpc_core::ExecCtx exec_ctx;
  {
    Section section(this);
    session_->GiveUpFastPath(why);
  }
  Unref();
}

void Transport::OnPathWakeup() {
  std::shared_ptr<fabric::Endpoint> path;
  {
    Section section(this);
    path = woken_path_;
    if (path == nullptr) return;
    path->ClearWakeup();
    session_->Poll();
  }
  if (path->HasInput()) SchedulePolling(kPortions);
}

// Of a session in use, the timer is pending: the usual case.
void Transport::SyncHeartbeat() {
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

void Transport::StartHeartbeatTimer() {
  StartTimer(&heartbeat_timer_,
             grpc_core::Duration::Milliseconds(
                 absl::ToInt64Milliseconds(heartbeat_.interval())),
             &Transport::OnHeartbeatTimer);
}

void Transport::OnHeartbeatTimer() {
  if (!session_->using_fast_path()) return;
  if (!heartbeat_.OnTimer(session_->counters())) return;
  session_->RingLifeline();
  StartHeartbeatTimer();
}

void Transport::OnConnectWanted(const std::string& fabric,
                                const std::string& offer,
                                const std::string& token) {
  if (std::exchange(defers_path_, false)) {
    deferred_ = {session_->path_epoch(), fabric, offer, token};
    StartTimer(&defer_timer_,
               grpc_core::Duration::Milliseconds(
                   absl::ToInt64Milliseconds(paths::ShortLives::kShort)),
               &Transport::OnDeferTimer);
    return Settle(absl::OkStatus());
  }
  side_paths_.Connect(fabric, offer, token, OnSidePath());
}

// The connection has lived long enough for a side path.
void Transport::OnDeferTimer() {
  if (deferred_.epoch != session_->path_epoch() ||
      !session_->negotiates_path()) {
    return;
  }
  side_paths_.Connect(deferred_.fabric, deferred_.offer, deferred_.token,
                      OnSidePath());
}

void Transport::OnListenWanted() {
  connection::ListenAnew(session_.get(), &side_paths_, OnSidePath());
}

void Transport::OnPathChosen(const session::PathDescription& path) {
  LogPath(path);
  hello_timer_.Cancel();
  settle_timer_.Cancel();
  config_.half_open = nullptr;
  backoff_.OnPathChosen(/*is_best=*/path.reason.empty(), Now());
  const absl::Status status = connection::CheckPath(config_.settings, path);
  if (!status.ok()) session_->Close(status);
  Settle(status);
  RetryPathLater();
}

// Logs the path, unless it logged the same last time: an attempt may fail again
// and again for the same reason.
void Transport::LogPath(const session::PathDescription& path) {
  std::string text = connection::PathText(path);
  if (text == path_logged_) return;
  log_.Info(
      absl::StrCat(config_.is_client ? "connection to " : "connection from ",
                   peer_, ": ", text));
  path_logged_ = std::move(text);
}

void Transport::RetryPathLater() {
  if (!session_->CanRetryPath() || retry_timer_.pending()) return;
  StartTimer(&retry_timer_,
             grpc_core::Duration::Milliseconds(
                 absl::ToInt64Milliseconds(backoff_.Next())),
             &Transport::OnRetryTimer);
}

void Transport::OnRetryTimer() { session_->RetryPath(); }

}  // namespace core
}  // namespace penstock
