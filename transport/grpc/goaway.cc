#include "transport/grpc/goaway.h"

#include <algorithm>
#include <climits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/transport/error_utils.h"
#include "src/core/lib/transport/http2_errors.h"
#include "transport/base/log.h"
#include "transport/grpc/internal/errors.h"
#include "transport/grpc/stream.h"
#include "transport/grpc/transport.h"

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
// chosen other connections. A thread may choose this connection, and lose its
// core before its call begins. This time covers a few time slices of a busy
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

// Returns the streams whose ids satisfy `predicate`. Needed because closing a
// stream within ForEach() would change the list.
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

Goaway::Goaway(Transport* transport, session::Session* session,
               const StreamList* streams, const StreamAcceptor* acceptor)
    : transport_(transport),
      session_(session),
      streams_(streams),
      acceptor_(acceptor),
      departure_(session),
      drain_timer_(transport),
      state_("penstock", GRPC_CHANNEL_READY) {}

void Goaway::Watch(grpc_transport_op* op) {
  if (op->start_connectivity_watch != nullptr) {
    state_.AddWatcher(op->start_connectivity_watch_state,
                      std::move(op->start_connectivity_watch));
    is_watched_ = true;
    AwaitChannel();
  }
  if (op->stop_connectivity_watch != nullptr) {
    state_.RemoveWatcher(op->stop_connectivity_watch);
  }
}

void Goaway::Begin(const grpc_error_handle& error) {
  if (transport_->is_client()) return departure_.Leave();
  bool graceful;
  const absl::Status why = DepartureStatus(error, &graceful);
  if (!graceful) return departure_.End(why);
  if (departure_.Begin(why)) {
    StartDrainTimer(kDrainLimit);
  }
}

void Goaway::StartDrainTimer(absl::Duration limit) {
  drain_timer_.Start(limit, [this] {
    departure_.OnTimeLimit();
    if (transport_->is_client()) CloseBlockedStreams();
  });
}

void Goaway::Disconnect(const grpc_error_handle& error) {
  if (!transport_->is_client()) {
    bool graceful;
    const uint32_t first = acceptor_->first_opened();
    if (first != 0) departure_.TakeBack(first);
    departure_.End(DepartureStatus(error, &graceful));
  }
  session_->Close(absl::UnavailableError(grpc_core::StatusToString(error)));
}

void Goaway::CloseWhenDrained() {
  if (!departure_.gone() || session_->closed()) return;
  if (!streams_->empty() || !acceptor_->idle()) return;
  if (!session_->drained()) return;
  session_->Close(absl::UnavailableError("drained after GOAWAY"));
}

void Goaway::OnGoaway(uint32_t last_stream, const absl::Status& status) {
  if (!transport_->is_client()) return;
  const absl::Status valid =
      departure_.OnGoaway(last_stream, std::string(status.message()));
  if (!valid.ok()) return session_->Close(valid);
  absl::Status state = absl::UnavailableError(
      absl::StrCat("GOAWAY received: ", status.message()));
  if (status.message() == kTooManyPings) SlowDown(&state);
  Leave(state);
  CloseUnseenStreams(last_stream);
}

void Goaway::OnRefused() {
  departure_.Leave();
  Leave(absl::UnavailableError("the server refused a call"));
}

uint32_t Goaway::NextStreamId() {
  const uint32_t id = departure_.OpenStream();
  if (departure_.gone()) {
    Leave(absl::UnavailableError("the connection has used all stream ids"));
  }
  return id;
}

// Makes the channel use other connections, by reporting the same state as
// gRPC's HTTP/2.
void Goaway::Leave(const absl::Status& why) {
  TellChannel(GRPC_CHANNEL_TRANSIENT_FAILURE, why);
  if (telling_ != Telling::kUnderWay) CloseBlockedStreams();
}

// Closes blocked streams, because they can start immediately on another
// connection.
void Goaway::CloseBlockedStreams() {
  const auto is_blocked = [this](uint32_t id) {
    return session_->streams().IsBlocked(id);
  };
  for (Stream* stream : Select(*streams_, is_blocked)) stream->CloseUnsent();
}

void Goaway::TellChannel(grpc_connectivity_state state,
                         const absl::Status& why) {
  state_.SetState(state, why, "left");
  AwaitChannel();
}

// Runs OnChannelTold() after the channel's watchers have run. gRPC calls
// watchers by closures of the ExecCtx, which run in the order in which they
// were added.
void Goaway::AwaitChannel() {
  if (!transport_->is_client() || !is_watched_ || telling_ != Telling::kNot ||
      state_.state() == GRPC_CHANNEL_READY) {
    return;
  }
  telling_ = Telling::kUnderWay;
  transport_->Ref();
  grpc_core::ExecCtx::Run(DEBUG_LOCATION,
                          grpc_core::NewClosure([this](grpc_error_handle) {
                            {
                              Transport::Section section(transport_);
                              OnChannelTold();
                            }
                            transport_->Unref();
                          }),
                          absl::OkStatus());
}

void Goaway::OnChannelTold() {
  telling_ = Telling::kDone;
  if (departure_.leaving() && !streams_->empty()) {
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

void Goaway::CloseOnceTold(Stream* stream) { held_.Add(stream); }

void Goaway::CloseUnseenStreams(uint32_t last_stream) {
  const auto is_unseen = [last_stream](uint32_t id) {
    return id > last_stream;
  };
  for (Stream* stream : Select(*streams_, is_unseen)) {
    stream->CloseUnseen(ErrorWithCode(
        "GOAWAY received before the call was seen", GRPC_STATUS_UNAVAILABLE));
  }
}

// Makes the channel's next connections ping half as often. gRPC's subchannel
// reads the new interval from `*state`.
void Goaway::SlowDown(absl::Status* state) {
  const absl::Duration time = transport_->limits().keepalive.time;
  base::LogError(absl::StrCat(
      "connection to ", transport_->peer(),
      ": the server counts too many pings; GRPC_ARG_KEEPALIVE_TIME_MS, now ",
      absl::FormatDuration(time), ", is doubled for the next connection"));
  const int64_t doubled =
      std::min<int64_t>(absl::ToInt64Milliseconds(time) * 2, INT_MAX);
  state->SetPayload(grpc_core::kKeepaliveThrottlingKey,
                    absl::Cord(absl::StrCat(doubled)));
}

void Goaway::EndForPings() {
  const absl::Status status = absl::ResourceExhaustedError(kTooManyPings);
  departure_.End(status);
  session_->Close(status);
}

void Goaway::OnEnded(const absl::Status& cause) {
  drain_timer_.Cancel();
  // Tells the channel nothing in a forked child, because the channel would
  // reconnect. The new descriptors would be added to the parent's epoll set,
  // and the parent would then use pointers of the child.
  if (!transport_->IsForeign()) TellChannel(GRPC_CHANNEL_SHUTDOWN, cause);
}

}  // namespace core
}  // namespace penstock
