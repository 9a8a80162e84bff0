// Fast paths of a session: connecting, using, losing, reporting.

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "transport/base/probes.h"
#include "transport/base/token.h"
#include "transport/metrics/registry.h"
#include "transport/session/session.h"

namespace penstock {
namespace session {
namespace {

using wire::FrameType;

absl::string_view AsText(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void Session::AddControl(FrameType type, absl::string_view payload) {
  writer_.AddControl(type, handshake_.epoch(), payload);
}

absl::Status Session::OnPathFrame(const wire::Frame& frame) {
  const uint32_t epoch = frame.header.aux;
  PathHandshake::Actions actions;
  absl::Status status;
  switch (frame.header.type) {
    case FrameType::kPathReady:
      status = handshake_.OnPeerReady(epoch, &actions);
      break;
    case FrameType::kPathLost:
      status = handshake_.OnPeerLost(epoch, &actions);
      // If both sides noticed the loss, the peer may know the cause. The peer
      // may also merely repeat this side's reason.
      if (actions.report &&
          (actions.drop ||
           !absl::StrContains(AsText(frame.payload), negotiator_.Reason()))) {
        negotiator_.OnFailure(
            using_fast_ ? metrics::Reason::kLost
                        : metrics::Reason::kSetupFailed,
            absl::StrCat("the peer says: ", AsText(frame.payload)));
      }
      break;
    case FrameType::kPathWanted:
      if (config_.is_client) {
        return absl::InvalidArgumentError("a server asked for a path");
      }
      status = handshake_.OnPeerWanted(epoch, &actions);
      break;
    default:  // kPathOffered
      if (!config_.is_client || frame.payload.size() != base::kTokenBytes) {
        return absl::InvalidArgumentError("malformed offer of a path");
      }
      if (epoch != handshake_.epoch() || !handshake_.open()) break;
      peer_token_ = std::string(AsText(frame.payload));
      TryNextPath();
  }
  if (status.ok()) Apply(actions);
  return status;
}

void Session::Apply(const PathHandshake::Actions& actions) {
  if (actions.drop) DropFastPath();
  if (actions.report) CountLoss();
  if (actions.send_lost) {
    AddControl(FrameType::kPathLost, negotiator_.Reason());
  }
  if (actions.send_ready) AddControl(FrameType::kPathReady, fabric_);
  if (actions.send_wanted) {
    AddControl(FrameType::kPathWanted, absl::string_view());
  }
  if (actions.use) {
    using_fast_ = true;
    counters_.sending = fast_fabric_;
    if (std::exchange(has_lost_path_, false)) {
      ++counters_.paths_regained[static_cast<int>(fast_fabric_)];
    }
    sender_.UseFastPath(fast_.get());
    output().UseFastPath(fast_.get(), handshake_.epoch());
  }
  if (actions.use || actions.report) ReportPath();
  if (actions.listen) {
    negotiator_.Restart();
    path_events_->OnListenWanted();
  }
}

void Session::ReportPath() {
  const PathDescription path = DescribePath();
  metrics::Registry::Get()->Count(
      metrics::Metric::kPathDecisions,
      {role(), metrics::PathOf(path.fabric), path.cause});
  PENSTOCK_PROBE(path_chosen, recorder_.connection(), path.fabric.c_str());
  path_events_->OnPathChosen(path);
}

void Session::TryNextPath() {
  absl::optional<wire::FabricOffer> offer = negotiator_.Next();
  if (offer.has_value()) {
    path_events_->OnConnectWanted(offer->fabric, offer->data, peer_token_);
  } else if (negotiator_.HasCommonFabric()) {
    Apply(handshake_.OnLocalLost());  // the acceptor waits for a path
  } else {
    Apply(handshake_.OnNothingToTry());
  }
}

void Session::AddFastPath(const std::string& fabric,
                          std::shared_ptr<fabric::Endpoint> path) {
  if (closed() || fast_ != nullptr || !handshake_.open()) return;
  path_and_memory_ = std::make_shared<PathAndMemory>();
  path_and_memory_->path = std::move(path);
  fast_ = std::shared_ptr<fabric::Endpoint>(path_and_memory_,
                                            path_and_memory_->path.get());
  fabric_ = fabric;
  fast_fabric_ = metrics::FabricOf(fabric);
  fast_->Start(&fast_events_);
  streams_.input().UseFastPath(fast_.get(), handshake_.epoch());
  // Waits for the peer's hello: once told, the peer may send over the path, and
  // its data could overtake the hello.
  if (greeted()) Apply(handshake_.OnLocalReady());
}

void Session::FastPathFailed(const std::string& fabric,
                             const absl::Status& cause) {
  if (closed() || fast_ != nullptr || !handshake_.open()) return;
  if (config_.is_client) {
    negotiator_.OnFailure(metrics::Reason::kSetupFailed,
                          std::string(cause.message()));
    return TryNextPath();
  }
  negotiator_.OnWaitFailed(fabric, std::string(cause.message()));
  if (greeted() && !negotiator_.MayStillCome()) {
    Apply(handshake_.OnLocalLost());
  }
}

void Session::OfferPath(const std::string& token) {
  if (!closed()) AddControl(FrameType::kPathOffered, token);
}

bool Session::CanRetryPath() const {
  return config_.is_client && !closed() && negotiator_.HasCommonFabric() &&
         handshake_.state() == PathHandshake::State::kSettled;
}

void Session::RetryPath() {
  if (!CanRetryPath()) return;
  negotiator_.Restart();
  Apply(handshake_.Retry());
}

void Session::LoseFastPath(const absl::Status& cause) {
  if (fast_ == nullptr) return;
  negotiator_.OnFailure(
      using_fast_ ? metrics::Reason::kLost : metrics::Reason::kSetupFailed,
      absl::StrCat("lost: ", cause.message()));
  Apply(handshake_.OnLocalLost());
}

// Drops the fast path. Unacknowledged frames go over the lifeline.
void Session::DropFastPath() {
  if (std::exchange(using_fast_, false)) loss_is_uncounted_ = true;
  counters_.sending = metrics::Fabric::kTcp;
  MessageReader::Filled filled;
  if (closed()) filled = streams_.input().Stop();
  if (fast_ == nullptr) return;
  output().LoseFastPath();
  lost_paths_.push_back(std::exchange(fast_, nullptr));
  if (!closed()) filled = streams_.input().LoseFastPath();
  std::exchange(path_and_memory_, nullptr)->filled = std::move(filled);
  sender_.LoseFastPath();
}

// Counts the loss once the peer has agreed to continue over the lifeline. A
// peer that ends its session closes the path a moment before the lifeline,
// which is no loss.
void Session::CountLoss() {
  if (!std::exchange(loss_is_uncounted_, false)) return;
  has_lost_path_ = true;
  PENSTOCK_PROBE(path_lost, recorder_.connection(), fabric_.c_str());
  ++counters_.paths_lost[static_cast<int>(fast_fabric_)];
}

PathDescription Session::DescribePath() const {
  const fabric::Endpoint* const path =
      using_fast_ ? fast_.get() : lifeline_.get();
  PathDescription description;
  description.fabric = using_fast_ ? fabric_ : "tcp";
  description.detail = path->Describe();
  if (!using_fast_) {
    description.reason = negotiator_.Reason();
    description.cause = negotiator_.cause();
  }
  description.eager_max_bytes = streams_.output().eager_max_bytes();
  description.chunk_bytes = streams_.input().chunk_bytes(path);
  return description;
}

}  // namespace session
}  // namespace penstock
