#include "transport/session/path_handshake.h"

namespace penstock {
namespace session {

using State = PathHandshake::State;
using Actions = PathHandshake::Actions;

Actions PathHandshake::OnLocalReady() {
  Actions actions;
  if (!open()) return actions;
  actions.send_ready = true;
  actions.use = state_ == State::kReadyThere;
  state_ = actions.use ? State::kInUse : State::kReadyHere;
  return actions;
}

Actions PathHandshake::OnLocalLost() {
  Actions actions;
  if (!is_alive()) return actions;
  actions.drop = actions.send_lost = true;
  state_ = State::kLostHere;
  return actions;
}

Actions PathHandshake::OnNothingToTry() {
  Actions actions;
  if (state_ != State::kTrying && state_ != State::kLostHere) return actions;
  actions.report = true;
  state_ = State::kSettled;
  return actions;
}

Actions PathHandshake::Retry() {
  Actions actions;
  if (state_ != State::kSettled) return actions;
  actions.send_wanted = true;
  ++epoch_;
  state_ = State::kTrying;
  return actions;
}

absl::Status PathHandshake::OnPeerReady(uint32_t epoch, Actions* actions) {
  if (epoch != epoch_) return CheckEpoch(epoch);
  if (state_ == State::kTrying) {
    state_ = State::kReadyThere;
  } else if (state_ == State::kReadyHere) {
    actions->use = true;
    state_ = State::kInUse;
  }
  return absl::OkStatus();
}

absl::Status PathHandshake::OnPeerLost(uint32_t epoch, Actions* actions) {
  if (epoch != epoch_) return CheckEpoch(epoch);
  if (state_ == State::kSettled) return absl::OkStatus();
  actions->drop = actions->send_lost = state_ != State::kLostHere;
  actions->report = true;
  state_ = State::kSettled;
  return absl::OkStatus();
}

absl::Status PathHandshake::OnPeerWanted(uint32_t epoch, Actions* actions) {
  if (state_ != State::kSettled || epoch != epoch_ + 1) {
    return absl::InvalidArgumentError("the peer requested a path out of turn");
  }
  actions->listen = true;
  epoch_ = epoch;
  state_ = State::kTrying;
  return absl::OkStatus();
}

absl::Status PathHandshake::CheckEpoch(uint32_t epoch) const {
  if (epoch < epoch_) return absl::OkStatus();  // an old attempt
  return absl::InvalidArgumentError(
      "the peer names a path that was not requested yet");
}

}  // namespace session
}  // namespace penstock
