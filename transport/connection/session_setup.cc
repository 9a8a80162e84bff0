#include "transport/connection/session_setup.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/token.h"

namespace penstock {
namespace connection {
namespace {

uint64_t MonotonicNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

absl::Status NoHelloError() {
  return absl::DeadlineExceededError(
      absl::StrCat("the peer said no hello within ",
                   absl::ToInt64Seconds(kHelloLimit), " s"));
}

absl::Status NoPathError() {
  return absl::DeadlineExceededError(
      absl::StrCat("the peer agreed on no path within ",
                   absl::ToInt64Seconds(kSettleLimit), " s"));
}

session::Config SessionConfig(const Settings& settings, bool is_client,
                              uint8_t version,
                              const paths::SidePaths& side_paths) {
  session::Config config;
  config.is_client = is_client;
  config.version = version;
  config.offers = side_paths.Offers();
  config.load_in_place = settings.shm_sharing == ShmSharing::kSameUid;
  config.tuning.now_ns = MonotonicNanoseconds;
  config.tuning.eager_max_bytes = settings.eager_max_bytes;
  config.tuning.chunk_bytes = settings.chunk_bytes;
  if (!is_client) {
    absl::StatusOr<std::string> token = base::NewToken();
    if (token.ok()) config.token = *std::move(token);
  }
  return config;
}

connection::Heartbeat MakeHeartbeat(
    const Settings& settings, const connection::Keepalive::Config& keepalive) {
  return connection::Heartbeat(absl::Milliseconds(settings.heartbeat_ms),
                               keepalive);
}

void ListenAnew(session::Session* session, paths::SidePaths* side_paths,
                const paths::SidePaths::Done& done) {
  absl::StatusOr<std::string> token = base::NewToken();
  if (!token.ok()) {
    for (const wire::FabricOffer& offer : session->config().offers) {
      session->FastPathFailed(offer.fabric, token.status());
    }
    return;
  }
  side_paths->Cancel();
  side_paths->Listen(session->config().offers, *token, done);
  session->OfferPath(*token);
}

void EndAttempt(session::Session* session, uint32_t epoch,
                const std::string& fabric,
                absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path) {
  if (epoch != session->path_epoch()) return;
  if (path.ok()) {
    session->AddFastPath(fabric, *std::move(path));
  } else {
    session->FastPathFailed(fabric, path.status());
  }
}

}  // namespace connection
}  // namespace penstock
