// Paths beside the lifeline: had, polled, lost, tried again, and announced.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "transport/base/token.h"
#include "transport/grpc/transport.h"

namespace penstock {
namespace core {
namespace {

// How long both sides may take until they have agreed on a path, or on having
// none. Attempts have two seconds, those of verbs five, one after the other; on
// a bad day some packets are lost.
constexpr grpc_core::Duration kSettleLimit = grpc_core::Duration::Seconds(15);

}  // namespace

// A peer that does not answer would keep its half-open place, or be served over
// a fabric that the policy forbids.
void Transport::SyncSettleTimer() {
  if (!session_->negotiates_path() || settle_timer_.pending()) return;
  settle_epoch_ = session_->path_epoch();
  StartTimer(&settle_timer_, kSettleLimit, &Transport::OnSettleTimer);
}

void Transport::OnSettleTimer() {
  if (!session_->negotiates_path()) return;
  if (settle_epoch_ != session_->path_epoch()) return;  // a later attempt
  session_->Close(absl::DeadlineExceededError(absl::StrCat(
      "the peer agreed on no path within ", kSettleLimit.seconds(), " s")));
}

bool Transport::PollPath() {
  Section section(this);
  return session_->Poll();
}

// After a doorbell: nobody else may be about to poll, so all that has come is
// taken in, with room for others between two bounded amounts.
void Transport::PollUntilEmpty() {
  std::shared_ptr<fabric::Endpoint> path;
  {
    base::MutexLock lock(&mu_);
    path = session_->fast_path();
  }
  if (path == nullptr || !path->HasInput()) return;
  PollPath();
  if (path->HasInput()) SchedulePolling();
}

void Transport::SchedulePolling() {
  Ref();
  grpc_core::ExecCtx::Run(DEBUG_LOCATION,
                          grpc_core::NewClosure([this](grpc_error_handle) {
                            PollUntilEmpty();
                            Unref();
                          }),
                          absl::OkStatus());
}

SidePaths::Done Transport::OnSidePath() {
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
  if (epoch != session_->path_epoch()) return;  // too late
  if (path.ok()) {
    session_->AddFastPath(fabric, *std::move(path));
  } else {
    session_->FastPathFailed(fabric, path.status());
  }
}

// In this order: a path is woken for once it is among those that are armed.
void Transport::SyncPathPoller() {
  const std::shared_ptr<fabric::Endpoint>& path = session_->fast_path();
  if (path == woken_path_) return;  // as nearly always
  poller_.Watch(path);
  woken_path_ = path;
  for (const auto& waker : wakers_) waker->Stop();
  wakers_.clear();
  if (path == nullptr || path->wakeup_fds().empty()) return;
  std::shared_ptr<Transport> self = Share();
  wakers_ = PathWaker::Start(path, [self] { self->OnPathWakeup(); });
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
  if (path->HasInput()) SchedulePolling();
}

void Transport::OnConnectWanted(const std::string& fabric,
                                const std::string& offer,
                                const std::string& token) {
  side_paths_.Connect(fabric, offer, token, OnSidePath());
}

void Transport::OnListenWanted() {
  absl::StatusOr<std::string> token = base::NewToken();
  if (!token.ok()) {
    for (const wire::FabricOffer& offer : session_->config().offers) {
      session_->FastPathFailed(offer.fabric, token.status());
    }
    return;
  }
  side_paths_.Cancel();  // those of the attempt before
  side_paths_.Listen(session_->config().offers, *token, OnSidePath());
  session_->OfferPath(*token);
}

absl::Status Transport::CheckPolicy(
    const session::PathDescription& path) const {
  if (config_.settings.policy != Policy::kRequire ||
      config_.settings.Allows(path.fabric)) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      "Penstock policy is \"", config_.settings.ToString(), "\", but ",
      path.reason, " (PENSTOCK_POLICY=prefer would fall back to tcp)"));
}

void Transport::OnPathChosen(const session::PathDescription& path) {
  LogPath(path);
  hello_timer_.Cancel();
  settle_timer_.Cancel();
  config_.half_open = nullptr;
  backoff_.OnPathChosen(/*is_best=*/path.reason.empty(), Now());
  const absl::Status status = CheckPolicy(path);
  if (!status.ok()) session_->Close(status);
  Settle(status);
  RetryPathLater();
}

// Once, however often an attempt fails for the same reason.
void Transport::LogPath(const session::PathDescription& path) {
  std::string text = path.fabric;
  if (!path.detail.empty()) absl::StrAppend(&text, " (", path.detail, ")");
  if (!path.reason.empty()) {
    absl::StrAppend(&text, "; not better because ", path.reason);
  }
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
