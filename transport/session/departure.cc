#include "transport/session/departure.h"

#include "absl/strings/str_cat.h"

namespace penstock {
namespace session {
namespace {

// The cookie of the ping that follows the first GOAWAY. gRPC's own pings have
// cookies from 1 on.
constexpr uint64_t kPing = UINT64_MAX;

}  // namespace

bool Departure::Begin(const absl::Status& why) {
  if (state_ != State::kOpen || session_->closed()) return false;
  state_ = State::kDraining;
  reason_ = why;
  session_->SendGoaway(wire::kLastStreamUnknown, why);
  session_->SendPing(kPing);
  return true;
}

void Departure::OnTimeLimit() {
  if (state_ == State::kDraining) End(reason_);
  OnChannelLeft();
}

bool Departure::OnPong(uint64_t cookie) {
  if (cookie != kPing || state_ != State::kDraining) return false;
  End(reason_);
  return true;
}

void Departure::End(const absl::Status& why) {
  if (gone() || session_->closed()) return;
  state_ = State::kGone;
  session_->SendGoaway(last_opened_, why);
}

bool Departure::OnStreamOpened(uint32_t stream) {
  if (gone()) return false;
  last_opened_ = stream;
  return true;
}

absl::Status Departure::OnGoaway(uint32_t last_stream,
                                 const std::string& reason) {
  if (last_stream > last_served_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a GOAWAY took back that streams above ", last_served_,
                     " are not served"));
  }
  last_served_ = last_stream;
  peer_reason_ = reason;
  if (last_stream != wire::kLastStreamUnknown) {
    Leave();
  } else if (state_ == State::kOpen) {
    state_ = State::kLeaving;
    session_->pongs().Hold();
  }
  return absl::OkStatus();
}

uint32_t Departure::OpenStream() {
  const uint32_t stream = next_stream_++;
  // Opens no more streams once the numbers are used up, because the next number
  // has another meaning in a GOAWAY.
  if (next_stream_ == wire::kLastStreamUnknown) Leave();
  return stream;
}

void Departure::OnChannelLeft() {
  if (state_ == State::kLeaving) Leave();
}

void Departure::Leave() {
  state_ = State::kGone;
  if (!session_->closed()) session_->pongs().Release();
}

}  // namespace session
}  // namespace penstock
