#include "transport/connection/session_setup.h"

#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/steady_time.h"
#include "transport/base/token.h"
#include "transport/paths/short_lives.h"

namespace penstock {
namespace connection {
namespace {

uint64_t MonotonicNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Returns UNAVAILABLE, with the reason and the remedy, if the settings require
// a fabric that does not carry the session.
absl::Status CheckPath(const Settings& settings,
                       const session::PathDescription& path) {
  if (settings.policy != Policy::kRequire || settings.Allows(path.fabric)) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      "Penstock policy is \"", settings.ToString(), "\", but ", path.reason,
      " (PENSTOCK_POLICY=prefer would fall back to tcp)"));
}

// Returns a description of the path for the log: "shm (ring 1 MiB)", or "tcp;
// not better because the peer is on another host".
std::string PathText(const session::PathDescription& path) {
  std::string text = path.fabric;
  if (!path.detail.empty()) absl::StrAppend(&text, " (", path.detail, ")");
  if (!path.reason.empty()) {
    absl::StrAppend(&text, "; not better because ", path.reason);
  }
  return text;
}

}  // namespace

session::Config SessionConfig(const Config& config,
                              const paths::SidePaths& side_paths) {
  const Settings& settings = config.settings;
  session::Config result;
  result.is_client = config.is_client;
  result.version = config.version;
  result.offers = side_paths.Offers();
  result.load_in_place = settings.shm_sharing == ShmSharing::kSameUid;
  result.defers_answers = config.defers_answers;
  result.tuning.now_ns = MonotonicNanoseconds;
  result.tuning.eager_max_bytes = settings.eager_max_bytes;
  result.tuning.chunk_bytes = settings.chunk_bytes;
  result.max_receive_bytes = config.max_receive_bytes;
  result.max_streams = config.max_streams;
  result.max_metadata_bytes = config.max_metadata_bytes;
  if (!config.is_client) {
    absl::StatusOr<std::string> token = base::NewToken();
    if (token.ok()) result.token = *std::move(token);
  }
  return result;
}

SessionSetup::SessionSetup(const Config& config, absl::Time began,
                           paths::SidePaths* side_paths,
                           session::Session* session, Host* host,
                           Settled settled)
    : is_client_(config.is_client),
      peer_(config.peer),
      settings_(config.settings),
      side_paths_(side_paths),
      session_(session),
      host_(host),
      settled_(std::move(settled)),
      half_open_(config.half_open),
      defers_path_(config.is_client &&
                   config.settings.policy != Policy::kRequire &&
                   paths::ShortLives::OfProcess()->AreFrequent(began)),
      hello_timer_(host),
      settle_timer_(host),
      defer_timer_(host),
      retry_timer_(host) {}

void SessionSetup::Start() {
  if (!is_client_) {
    side_paths_->Listen(session_->config().offers, session_->config().token,
                        OnSidePath());
  }
  session_->Start();
  hello_timer_.Start(kHelloLimit, [this] { OnHelloTimer(); });
}

void SessionSetup::End() {
  hello_timer_.Cancel();
  settle_timer_.Cancel();
  defer_timer_.Cancel();
  retry_timer_.Cancel();
  side_paths_->Cancel();
  half_open_ = nullptr;
}

void SessionSetup::OnHelloTimer() {
  if (session_->greeted()) return;
  session_->Close(absl::DeadlineExceededError(
      absl::StrCat("the peer said no hello within ",
                   absl::ToInt64Seconds(kHelloLimit), " s")));
}

void SessionSetup::LimitSettling() {
  const uint32_t epoch = session_->path().epoch();
  settle_timer_.Start(kSettleLimit, [this, epoch] { OnSettleTimer(epoch); });
}

void SessionSetup::OnSettleTimer(uint32_t epoch) {
  if (!session_->path().negotiates()) return;
  // Ignores the timer of an earlier attempt, because the current attempt has a
  // timer of its own.
  if (epoch != session_->path().epoch()) return;
  session_->Close(absl::DeadlineExceededError(
      absl::StrCat("the peer agreed on no path within ",
                   absl::ToInt64Seconds(kSettleLimit), " s")));
}

void SessionSetup::OnConnectWanted(const std::string& fabric,
                                   const std::string& offer,
                                   const std::string& token) {
  if (!std::exchange(defers_path_, false)) {
    return side_paths_->Connect(fabric, offer, token, OnSidePath());
  }
  deferred_ = {session_->path().epoch(), fabric, offer, token};
  defer_timer_.Start(paths::ShortLives::kShort, [this] { OnDeferTimer(); });
  settled_(absl::OkStatus());
}

// Connects the delayed side path, because the connection has lived long enough.
void SessionSetup::OnDeferTimer() {
  if (deferred_.epoch != session_->path().epoch() ||
      !session_->path().negotiates()) {
    return;
  }
  side_paths_->Connect(deferred_.fabric, deferred_.offer, deferred_.token,
                       OnSidePath());
}

void SessionSetup::OnListenWanted() {
  absl::StatusOr<std::string> token = base::NewToken();
  if (!token.ok()) {
    for (const wire::FabricOffer& offer : session_->config().offers) {
      session_->path().OnFailure(offer.fabric, token.status());
    }
    return;
  }
  side_paths_->Cancel();
  side_paths_->Listen(session_->config().offers, *token, OnSidePath());
  session_->path().Offer(*token);
}

void SessionSetup::OnPathChosen(const session::PathDescription& path) {
  LogPath(path);
  hello_timer_.Cancel();
  settle_timer_.Cancel();
  half_open_ = nullptr;
  backoff_.OnPathChosen(/*is_best=*/path.reason.empty(), base::SteadyNow());
  const absl::Status status = CheckPath(settings_, path);
  if (!status.ok()) session_->Close(status);
  RetryLater();
  settled_(status);
}

void SessionSetup::RetryLater() {
  if (!session_->path().CanRetry() || retry_timer_.pending()) return;
  retry_timer_.Start(backoff_.Next(), [this] { session_->path().Retry(); });
}

// Logs the path, unless the text equals the last logged text. An attempt may
// fail repeatedly for the same reason.
void SessionSetup::LogPath(const session::PathDescription& path) {
  std::string text = PathText(path);
  if (text == path_logged_) return;
  log_.Info(absl::StrCat(is_client_ ? "connection to " : "connection from ",
                         peer_, ": ", text));
  path_logged_ = std::move(text);
}

paths::SidePaths::Done SessionSetup::OnSidePath() {
  std::shared_ptr<Host> share = host_->Share();
  const uint32_t epoch = session_->path().epoch();
  return [this, share, epoch](
             const std::string& fabric,
             absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path) {
    share->Enter([&] { EndAttempt(epoch, fabric, std::move(path)); });
  };
}

void SessionSetup::EndAttempt(
    uint32_t epoch, const std::string& fabric,
    absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path) {
  if (epoch != session_->path().epoch()) return;
  if (path.ok()) {
    session_->path().Add(fabric, *std::move(path));
  } else {
    session_->path().OnFailure(fabric, path.status());
  }
}

}  // namespace connection
}  // namespace penstock
