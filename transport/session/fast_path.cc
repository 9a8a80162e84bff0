#include "transport/session/fast_path.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "transport/base/probes.h"
#include "transport/base/token.h"
#include "transport/metrics/registry.h"

namespace penstock {
namespace session {
namespace {

using wire::FrameType;

absl::string_view AsText(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

FastPath::FastPath(const Parts& parts, Streams* streams,
                   fabric::EndpointEvents* input, PathEvents* events)
    : config_(*parts.config),
      lifeline_(parts.lifeline),
      sender_(parts.sender),
      writer_(parts.writer),
      counters_(parts.counters),
      recorder_(parts.recorder),
      streams_(streams),
      input_(input),
      events_(events),
      negotiator_(config_.offers) {}

void FastPath::OnHello(wire::Hello hello) {
  greeted_ = true;
  negotiator_.OnPeerOffers(std::move(hello.offers));
  if (config_.is_client) {
    peer_token_ = std::move(hello.token);
    TryNext();
  } else if (path_ != nullptr) {  // the path came before the hello
    Apply(handshake_.OnLocalReady());
  } else if (!negotiator_.HasCommonFabric()) {
    Apply(handshake_.OnNothingToTry());
  } else if (!negotiator_.MayStillCome()) {  // failed before the hello
    Apply(handshake_.OnLocalLost());
  }
}

void FastPath::End() {
  ended_ = true;
  Drop();
}

void FastPath::LeakLost() {
  (void)new std::vector<std::shared_ptr<fabric::Endpoint>>(std::move(lost_));
  lost_.clear();
}

void FastPath::KeepMemory() {
  if (path_and_memory_ != nullptr) {
    path_and_memory_->filled = streams_->input().Stop();
  }
}

void FastPath::AddControl(FrameType type, absl::string_view payload) {
  writer_->AddControl(type, handshake_.epoch(), payload);
}

absl::Status FastPath::OnFrame(const wire::Frame& frame) {
  const uint32_t epoch = frame.header.aux;
  PathHandshake::Actions actions;
  absl::Status status;
  switch (frame.header.type) {
    case FrameType::kPathReady:
      status = handshake_.OnPeerReady(epoch, &actions);
      break;
    case FrameType::kPathLost:
      status = handshake_.OnPeerLost(epoch, &actions);
      // Adds the peer's reason, unless it only repeats this side's reason. If
      // both sides noticed the loss, the peer may know more.
      if (actions.report &&
          (actions.drop ||
           !absl::StrContains(AsText(frame.payload), negotiator_.Reason()))) {
        negotiator_.OnFailure(
            in_use_ ? metrics::Reason::kLost : metrics::Reason::kSetupFailed,
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
      TryNext();
  }
  if (status.ok()) Apply(actions);
  return status;
}

void FastPath::Apply(const PathHandshake::Actions& actions) {
  if (actions.drop) Drop();
  if (actions.report) CountLoss();
  if (actions.send_lost) {
    AddControl(FrameType::kPathLost, negotiator_.Reason());
  }
  if (actions.send_ready) AddControl(FrameType::kPathReady, fabric_);
  if (actions.send_wanted) {
    AddControl(FrameType::kPathWanted, absl::string_view());
  }
  if (actions.use) {
    in_use_ = true;
    counters_->sending = kind_;
    if (std::exchange(has_lost_path_, false)) {
      ++counters_->paths_regained[static_cast<int>(kind_)];
    }
    sender_->UseFastPath(path_.get());
    streams_->output().UseFastPath(path_.get(), handshake_.epoch());
  }
  if (actions.use || actions.report) Report();
  if (actions.listen) {
    negotiator_.Restart();
    events_->OnListenWanted();
  }
}

void FastPath::Report() {
  const PathDescription path = Describe();
  metrics::Registry::Get()->Count(
      metrics::Metric::kPathDecisions,
      {config_.role(), metrics::PathOf(path.fabric), path.cause});
  PENSTOCK_PROBE(path_chosen, recorder_->connection(), path.fabric.c_str());
  events_->OnPathChosen(path);
}

void FastPath::TryNext() {
  absl::optional<wire::FabricOffer> offer = negotiator_.Next();
  if (offer.has_value()) {
    events_->OnConnectWanted(offer->fabric, offer->data, peer_token_);
  } else if (negotiator_.HasCommonFabric()) {
    Apply(handshake_.OnLocalLost());  // tells the waiting acceptor
  } else {
    Apply(handshake_.OnNothingToTry());
  }
}

void FastPath::Add(const std::string& fabric,
                   std::shared_ptr<fabric::Endpoint> path) {
  if (ended_ || path_ != nullptr || !handshake_.open()) return;
  path_and_memory_ = std::make_shared<PathAndMemory>();
  path_and_memory_->path = std::move(path);
  path_ = std::shared_ptr<fabric::Endpoint>(path_and_memory_,
                                            path_and_memory_->path.get());
  fabric_ = fabric;
  kind_ = metrics::FabricOf(fabric);
  path_->Start(input_);
  streams_->input().UseFastPath(path_.get(), handshake_.epoch());
  // Waits for the peer's hello before telling the peer. Otherwise data that the
  // peer sends over the path could arrive before the hello.
  if (greeted_) Apply(handshake_.OnLocalReady());
}

void FastPath::OnFailure(const std::string& fabric, const absl::Status& cause) {
  if (ended_ || path_ != nullptr || !handshake_.open()) return;
  if (config_.is_client) {
    negotiator_.OnFailure(metrics::Reason::kSetupFailed,
                          std::string(cause.message()));
    return TryNext();
  }
  negotiator_.OnWaitFailed(fabric, std::string(cause.message()));
  if (greeted_ && !negotiator_.MayStillCome()) {
    Apply(handshake_.OnLocalLost());
  }
}

void FastPath::Offer(const std::string& token) {
  if (!ended_) AddControl(FrameType::kPathOffered, token);
}

bool FastPath::CanRetry() const {
  return config_.is_client && !ended_ && negotiator_.HasCommonFabric() &&
         handshake_.state() == PathHandshake::State::kSettled;
}

void FastPath::Retry() {
  if (!CanRetry()) return;
  negotiator_.Restart();
  Apply(handshake_.Retry());
}

void FastPath::Lose(const absl::Status& cause) {
  if (path_ == nullptr) return;
  negotiator_.OnFailure(
      in_use_ ? metrics::Reason::kLost : metrics::Reason::kSetupFailed,
      absl::StrCat("lost: ", cause.message()));
  Apply(handshake_.OnLocalLost());
}

// Drops the fast path. Unacknowledged frames go over the lifeline.
void FastPath::Drop() {
  if (std::exchange(in_use_, false)) loss_is_uncounted_ = true;
  counters_->sending = metrics::Fabric::kTcp;
  MessageReader::Filled filled;
  if (ended_) filled = streams_->input().Stop();
  if (path_ == nullptr) return;
  streams_->output().LoseFastPath();
  lost_.push_back(std::exchange(path_, nullptr));
  if (!ended_) filled = streams_->input().LoseFastPath();
  std::exchange(path_and_memory_, nullptr)->filled = std::move(filled);
  sender_->LoseFastPath();
}

// Counts the loss once the peer has agreed to continue over the lifeline. A
// peer that ends its session closes the path a moment before the lifeline,
// which is no loss.
void FastPath::CountLoss() {
  if (!std::exchange(loss_is_uncounted_, false)) return;
  has_lost_path_ = true;
  PENSTOCK_PROBE(path_lost, recorder_->connection(), fabric_.c_str());
  ++counters_->paths_lost[static_cast<int>(kind_)];
}

PathDescription FastPath::Describe() const {
  const fabric::Endpoint* const path = carrier();
  PathDescription description;
  description.fabric = in_use_ ? fabric_ : "tcp";
  description.detail = path->Describe();
  if (!in_use_) {
    description.reason = negotiator_.Reason();
    description.cause = negotiator_.cause();
  }
  description.eager_max_bytes = streams_->output().eager_max_bytes();
  description.chunk_bytes = streams_->input().chunk_bytes(path);
  return description;
}

}  // namespace session
}  // namespace penstock
