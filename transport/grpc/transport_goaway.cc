// Handles GOAWAY and pings: the orderly end of a connection.

#include <algorithm>
#include <climits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/transport/error_utils.h"
#include "src/core/lib/transport/http2_errors.h"
#include "transport/base/log.h"
#include "transport/grpc/errors.h"
#include "transport/grpc/stream.h"
#include "transport/grpc/transport.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace core {
namespace {

// The text of the GOAWAY for too many pings. gRPC's HTTP/2 transport uses the
// same text.
constexpr char kTooManyPings[] = "too_many_pings";

// The timeout of the client's answer to the first GOAWAY. gRPC's HTTP/2 has the
// same timeout.
constexpr absl::Duration kDrainLimit = absl::Seconds(20);

// The time for which a busy client still carries calls after its channel has
// chosen other connections. A thread that has chosen this connection may lose
// its core before its call begins. The time is a few time slices of a busy
// scheduler.
constexpr absl::Duration kLateCalls = absl::Milliseconds(20);

// Returns the status for the GOAWAY. Sets `*graceful` to true if the GOAWAY may
// be sent in two steps.
absl::Status DepartureStatus(const grpc_error_handle& error, bool* graceful) {
  std::string message;
  grpc_http2_error_code code = GRPC_HTTP2_NO_ERROR;
  grpc_error_get_status(error, grpc_core::Timestamp::InfFuture(), nullptr,
                        &message, &code, nullptr);
  *graceful = code == GRPC_HTTP2_NO_ERROR;
  return absl::UnavailableError(message);
}

// Returns the streams whose ids satisfy `predicate`. (Closing a stream within
// ForEach() would change the list.)
template <typename Predicate>
std::vector<Stream*> Select(const StreamList& streams, Predicate predicate) {
  std::vector<Stream*> selected;
  streams.ForEach([&](StreamList::Node* node) {
    auto* const stream = static_cast<Stream*>(node);
    if (predicate(stream->id())) selected.push_back(stream);
  });
  return selected;
}

}  // namespace

void Transport::BeginGoaway(const grpc_error_handle& error) {
  if (is_client()) return departure_.Leave();
  bool graceful;
  const absl::Status why = DepartureStatus(error, &graceful);
  if (!graceful) return departure_.End(why);
  if (departure_.Begin(why)) {
    StartDrainTimer(kDrainLimit);
  }
}

void Transport::StartDrainTimer(absl::Duration limit) {
  drain_timer_.Start(limit, [this] {
    mu_.AssertHeld();
    OnDrainTimer();
  });
}

void Transport::OnDrainTimer() {
  departure_.OnTimeLimit();
  if (is_client()) CloseBlockedStreams();
}

// Ends the connection. On a server, tells the client which streams gRPC has not
// accepted, so that the client may retry these streams on a different
// connection.
void Transport::Disconnect(const grpc_error_handle& error) {
  if (!is_client()) {
    bool graceful;
    if (!opened_.empty()) departure_.TakeBack(opened_.front());
    departure_.End(DepartureStatus(error, &graceful));
  }
  session_->Close(absl::UnavailableError(grpc_core::StatusToString(error)));
}

// Closes the session after a GOAWAY, when the last call has ended and the peer
// has received all output.
void Transport::CloseWhenDrained() {
  if (!departure_.gone() || session_->closed()) return;
  if (!streams_.empty() || !opened_.empty() || accepting_ > 0) return;
  if (!session_->drained()) return;
  session_->Close(absl::UnavailableError("drained after GOAWAY"));
}

void Transport::OnGoaway(uint32_t last_stream, const absl::Status& status) {
  if (!is_client()) return;
  const absl::Status valid =
      departure_.OnGoaway(last_stream, std::string(status.message()));
  if (!valid.ok()) return session_->Close(valid);
  absl::Status state = absl::UnavailableError(
      absl::StrCat("GOAWAY received: ", status.message()));
  if (status.message() == kTooManyPings) SlowDown(&state);
  Leave(state);
  CloseUnseenStreams(last_stream);
}

// Leaves the connection. Only a server that shuts down refuses calls, and its
// GOAWAY may arrive later. gRPC retries a refused call only once, so the retry
// must not choose this connection again.
void Transport::OnRefused() {
  mu_.AssertHeld();
  departure_.Leave();
  Leave(absl::UnavailableError("the server refused a call"));
}

uint32_t Transport::NextStreamId() {
  mu_.AssertHeld();
  const uint32_t id = departure_.OpenStream();
  if (departure_.gone()) {
    Leave(absl::UnavailableError("the connection has used all stream ids"));
  }
  return id;
}

// Makes the channel use other connections. gRPC's HTTP/2 reports the same
// state.
void Transport::Leave(const absl::Status& why) {
  TellChannel(GRPC_CHANNEL_TRANSIENT_FAILURE, why);
  if (telling_ != Telling::kUnderWay) CloseBlockedStreams();
}

// Closes blocked streams, which can start on another connection at once.
void Transport::CloseBlockedStreams() {
  const auto is_blocked = [this](uint32_t id) {
    mu_.AssertHeld();
    return session_->IsBlocked(id);
  };
  for (Stream* stream : Select(streams_, is_blocked)) stream->CloseUnsent();
}

// Reports the state to the channel. The channel's threads see the state a
// moment later, and start calls meanwhile. Each call that fails at once is
// followed by the next. Therefore a connection that is being left carries these
// calls, or holds them.
void Transport::TellChannel(grpc_connectivity_state state,
                            const absl::Status& why) {
  state_.SetState(state, why, "left");
  AwaitChannel();
}

// Runs OnChannelTold() after the channel's watchers. gRPC notifies watchers
// with closures of the ExecCtx, which runs closures in order.
void Transport::AwaitChannel() {
  if (!is_client() || !is_watched_ || telling_ != Telling::kNot ||
      state_.state() == GRPC_CHANNEL_READY) {
    return;
  }
  telling_ = Telling::kUnderWay;
  Ref();
  grpc_core::ExecCtx::Run(DEBUG_LOCATION,
                          grpc_core::NewClosure([this](grpc_error_handle) {
                            {
                              Section section(this);
                              OnChannelTold();
                            }
                            Unref();
                          }),
                          absl::OkStatus());
}

void Transport::OnChannelTold() {
  telling_ = Telling::kDone;
  if (departure_.leaving() && !streams_.empty()) {
    StartDrainTimer(kLateCalls);
  } else {
    departure_.OnChannelLeft();
  }
  CloseBlockedStreams();
  while (!held_.empty()) {
    auto* const stream = static_cast<Stream*>(held_.first());
    held_.Remove(stream);
    stream->CloseHeld();
  }
}

void Transport::CloseOnceTold(Stream* stream) {
  mu_.AssertHeld();
  held_.Add(stream);
}

void Transport::CloseUnseenStreams(uint32_t last_stream) {
  const auto is_unseen = [last_stream](uint32_t id) {
    return id > last_stream;
  };
  for (Stream* stream : Select(streams_, is_unseen)) {
    stream->CloseUnseen(ErrorWithCode(
        "GOAWAY received before the call was seen", GRPC_STATUS_UNAVAILABLE));
  }
}

// Makes the channel's next connections ping half as often. gRPC's subchannel
// reads the new interval from the state.
void Transport::SlowDown(absl::Status* state) {
  const absl::Duration time = limits_.keepalive.time;
  base::LogError(absl::StrCat(
      "connection to ", peer(),
      ": the server counts too many pings; GRPC_ARG_KEEPALIVE_TIME_MS, now ",
      absl::FormatDuration(time), ", is doubled for the next connection"));
  const int64_t doubled =
      std::min<int64_t>(absl::ToInt64Milliseconds(time) * 2, INT_MAX);
  state->SetPayload(grpc_core::kKeepaliveThrottlingKey,
                    absl::Cord(absl::StrCat(doubled)));
}

void Transport::OnPing() {
  if (is_client() || liveness_.MayPing()) return;
  const absl::Status status = absl::ResourceExhaustedError(kTooManyPings);
  departure_.End(status);
  session_->Close(status);
}

void Transport::OnPong(uint64_t cookie) {
  if (departure_.OnPong(cookie)) return;
  auto it = pings_.find(cookie);
  if (it == pings_.end()) return;
  grpc_core::ExecCtx::Run(DEBUG_LOCATION, it->second, absl::OkStatus());
  pings_.erase(it);
}

}  // namespace core
}  // namespace penstock
