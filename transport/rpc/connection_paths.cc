// How a connection gets, polls, loses and retries its fast path, and what it
// accepts of the peer.

#include <sys/epoll.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/log.h"
#include "transport/base/steady_time.h"
#include "transport/connection/path_policy.h"
#include "transport/connection/session_setup.h"
#include "transport/rpc/connection.h"

namespace penstock {
namespace rpc {

bool Connection::PollPath() {
  Section section(this, Entry::kInput);
  return session_->Poll();
}

// Delivers all input after a doorbell, since perhaps nothing else makes the
// thread poll. Between two bounded amounts, other work of the loop runs.
void Connection::PollUntilEmpty() {
  std::shared_ptr<fabric::Endpoint> path;
  {
    base::MutexLock lock(&mu_);
    path = session_->fast_path();
  }
  if (path == nullptr || !path->HasInput()) return;
  PollPath();
  if (path->HasInput()) SchedulePolling();
}

void Connection::SchedulePolling() {
  std::shared_ptr<Connection> self = Share();
  loop_->Post([self] { self->PollUntilEmpty(); });
}

// Adds the path to the PollSet, which arms it, before it watches for wake-ups.
void Connection::SyncPath() {
  const std::shared_ptr<fabric::Endpoint>& path = session_->fast_path();
  if (path == watched_path_) return;  // the usual case
  poller_.Watch(path);
  watched_path_ = path;
  for (progress::EventLoop::Id watch : path_watches_) loop_->Unwatch(watch);
  path_watches_.clear();
  if (path == nullptr) return;
  std::shared_ptr<Connection> self = Share();
  for (int fd : path->wakeup_fds()) {
    absl::StatusOr<progress::EventLoop::Id> watch = loop_->Watch(
        fd, EPOLLIN, [self, path](uint32_t) { self->OnWakeup(path); });
    if (watch.ok()) {
      path_watches_.push_back(*watch);
    } else {
      base::LogError("a path's input will be noticed late: " +
                     watch.status().ToString());
    }
  }
}

bool Connection::MayGiveUpPath() const {
  return connection::ToleratesTcp(config_.settings);
}

void Connection::GiveUpPath(const absl::Status& why) {
  {
    Section section(this);
    session_->GiveUpFastPath(why);
  }
  Unref();
}

void Connection::OnWakeup(const std::shared_ptr<fabric::Endpoint>& path) {
  {
    Section section(this, Entry::kInput);
    if (path != watched_path_) return;
    path->ClearWakeup();
    session_->Poll();
  }
  if (path->HasInput()) SchedulePolling();
}

paths::SidePaths::Done Connection::OnSidePath() {
  std::shared_ptr<Connection> self = Share();
  const uint32_t epoch = session_->path_epoch();
  return [self, epoch](const std::string& fabric,
                       absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path) {
    self->AddSidePath(epoch, fabric, std::move(path));
  };
}

void Connection::AddSidePath(
    uint32_t epoch, const std::string& fabric,
    absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path) {
  Section section(this);
  connection::EndAttempt(session_.get(), epoch, fabric, std::move(path));
}

void Connection::OnConnectWanted(const std::string& fabric,
                                 const std::string& offer,
                                 const std::string& token) {
  side_paths_.Connect(fabric, offer, token, OnSidePath());
}

void Connection::OnListenWanted() {
  connection::ListenAnew(session_.get(), &side_paths_, OnSidePath());
}

void Connection::OnPathChosen(const session::PathDescription& path) {
  LogPath(path);
  hello_timer_.Cancel();
  settle_timer_.Cancel();
  config_.half_open = nullptr;
  backoff_.OnPathChosen(/*is_best=*/path.reason.empty(), base::SteadyNow());
  const absl::Status status = connection::CheckPath(config_.settings, path);
  if (!status.ok()) return session_->Close(status);
  if (!std::exchange(settled_, true)) events_->OnSettled(this);
  if (session_->CanRetryPath() && !retry_timer_.pending()) {
    StartTimer(&retry_timer_, backoff_.Next(), &Connection::OnRetryTimer);
  }
}

void Connection::OnRetryTimer() { session_->RetryPath(); }

// Logs the path, unless it logged the same last time: an attempt may fail again
// and again for the same reason.
void Connection::LogPath(const session::PathDescription& path) {
  std::string text = connection::PathText(path);
  if (text == path_logged_) return;
  log_.Info(
      absl::StrCat(config_.is_client ? "connection to " : "connection from ",
                   config_.peer, ": ", text));
  path_logged_ = std::move(text);
}

void Connection::OnStreamOpened(uint32_t stream) { opened_.push_back(stream); }

// Holds calls back until a path carries them that satisfies the settings, and
// while the peer leaves the answers to its other calls unread.
bool Connection::MayAccept() const {
  return settled_ && !session_->closed() && session_->accepts_streams();
}

void Connection::AcceptOpened() {
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

void Connection::OnGoaway(uint32_t, const absl::Status& status) {
  session_->Close(absl::UnavailableError(
      absl::StrCat("the peer goes away: ", status.message())));
}

// This front end sends none, and metadata of its peers refers to none.
absl::Status Connection::OnEntry(uint32_t, absl::string_view) {
  return absl::InvalidArgumentError("the peer sent an entry of metadata");
}

}  // namespace rpc
}  // namespace penstock
