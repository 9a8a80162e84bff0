// Lifecycle.

#include "transport/session/session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/metrics/registry.h"
#include "transport/wire/reader.h"

namespace penstock {
namespace session {
namespace {

metrics::End EndOf(const absl::Status& cause) {
  if (absl::IsUnavailable(cause)) return metrics::End::kClosed;
  return absl::IsDeadlineExceeded(cause) ? metrics::End::kTimeout
                                         : metrics::End::kError;
}

}  // namespace

Session::Session(Config config, std::unique_ptr<fabric::Endpoint> lifeline,
                 SessionEvents* events, PathEvents* path_events)
    : config_(std::move(config)),
      events_(events),
      lifeline_events_(this, true),
      fast_events_(this, false),
      lifeline_(std::move(lifeline)),
      path_(parts(), &streams_, &fast_events_, path_events),
      budget_(config_.budget),
      sender_(lifeline_.get(), &buffers_, &budget_),
      reassembler_(config_.max_metadata_bytes),
      recorder_(config_),
      writer_(&sender_, &order_, &counters_),
      streams_(parts(), events) {}

Session::~Session() { path_.KeepMemory(); }

Parts Session::parts() {
  return {&config_, lifeline_.get(), &buffers_,  &budget_,
          &sender_, &writer_,        &counters_, &recorder_};
}

void Session::Start() {
  lifeline_->Start(&lifeline_events_);
  wire::Hello hello;
  hello.token = config_.token;
  hello.stream_window = config_.stream_window;
  hello.max_streams = config_.max_streams;
  hello.offers = config_.offers;
  writer_.AddControl(wire::FrameType::kHello, 0, wire::EncodeHello(hello));
  started_ = true;
}

absl::Status Session::OnHello(absl::Span<const uint8_t> payload) {
  if (state_ != State::kGreeting) {
    return absl::InvalidArgumentError("the peer said hello twice");
  }
  absl::StatusOr<wire::Hello> hello = wire::ParseHello(payload);
  if (!hello.ok()) return hello.status();
  state_ = State::kOpen;
  streams_.OnHello(hello->stream_window, hello->max_streams);
  path_.OnHello(*std::move(hello));
  return absl::OkStatus();
}

void Session::AttachStream(uint32_t stream, StreamEvents* events) {
  if (!closed()) return streams_.Attach(stream, events);
  events->OnReset(absl::UnavailableError("Penstock session closed"),
                  /*from_peer=*/false);
}

void Session::SendGoaway(uint32_t last_stream, const absl::Status& status) {
  writer_.Add(wire::FrameType::kGoaway, last_stream,
              static_cast<uint32_t>(status.code()), status.message());
}

void Session::SendEntry(uint32_t number, absl::string_view entry) {
  writer_.Add(wire::FrameType::kEntry, 0, number, entry);
}

void Session::SendPing(uint64_t cookie) {
  std::string payload;
  wire::AppendNumber<uint64_t>(cookie, &payload);
  writer_.Add(wire::FrameType::kPing, 0, 0, payload);
  RingLifeline();
}

void Session::SendPong(uint64_t cookie) {
  std::string payload;
  wire::AppendNumber<uint64_t>(cookie, &payload);
  writer_.Add(wire::FrameType::kPong, 0, 0, payload);
  RingLifeline();
}

void Session::OnPing(uint64_t cookie) {
  events_->OnPing();
  if (!holds_pong_ || held_pong_.has_value()) return SendPong(cookie);
  held_pong_ = cookie;
}

void Session::ReleasePong() {
  holds_pong_ = false;
  if (!held_pong_.has_value()) return;
  SendPong(*held_pong_);
  held_pong_.reset();
}

bool Session::Poll() {
  if (path_.endpoint() == nullptr || in_input_ || closed()) return false;
  in_input_ = true;
  const std::shared_ptr<fabric::Endpoint> path = path_.endpoint();
  const bool any = path->Poll();
  in_input_ = false;
  return any;
}

void Session::DrainFastPath() {
  // Limits the polls, because the peer may keep sending there.
  constexpr int kMaxPolls = 1024;
  for (int i = 0; i < kMaxPolls && Poll(); ++i) {
  }
}

void Session::OnLifelineBroken(const absl::Status& cause) {
  DrainFastPath();
  Close(cause);
}

void Session::Flush() {
  SendAdded();
  // Handles a failure found while sending: no doorbell rings for it, and all
  // threads may be asleep. The path's data goes over the lifeline.
  if (path_.endpoint() != nullptr && path_.endpoint()->HasFailed()) {
    DrainFastPath();
    SendAdded();
  }
  path_.ReleaseLost();
}

void Session::SendAdded() {
  if (closed() || !started_) return;
  const bool sends = sender_.has_output() || output().has_congested();
  if (sends) {
    lifeline_->BeginBatch();
    sender_.Flush();
    output().SendCongested();
  }
  AcknowledgeIfDue();
  // Rings if data was sent, or if the peer waits until its data is received.
  const bool wanted =
      path_.endpoint() != nullptr && path_.endpoint()->TakeDoorbellRequest();
  if (wanted || rings_lifeline_) {
    rings_lifeline_ = false;
    lifeline_->RingDoorbell();
  }
  if (sends) lifeline_->EndBatch();
  if ((sends && !sender_.idle()) || stalled_ns_ != 0) ObserveStall();
}

void Session::ObserveStall() {
  if (config_.tuning.now_ns == nullptr) return;
  const bool stalls = !closed() && !sender_.idle();
  if (stalls == (stalled_ns_ != 0)) return;
  const uint64_t now = config_.tuning.now_ns();
  if (stalls) {
    stalled_ = counters_.sending;
    stalled_ns_ = now;
    ++counters_.credit_stalls[static_cast<int>(stalled_)];
  } else {
    counters_.credit_stall_ns[static_cast<int>(stalled_)] +=
        now - std::exchange(stalled_ns_, 0);
  }
}

void Session::Close(const absl::Status& cause) {
  if (closed()) return;
  if (started_) sender_.Flush();  // a reset or trailers may wait
  state_ = State::kClosed;
  ObserveStall();
  metrics::Registry::Get()->Count(metrics::Metric::kSessionsEnded,
                                  {config_.role(), EndOf(cause)});
  path_.End();
  EndStreams(cause);
}

void Session::Abandon(const absl::Status& cause) {
  if (closed()) return;
  state_ = State::kClosed;
  path_.End();
  path_.LeakLost();
  EndStreams(cause);
}

void Session::EndStreams(const absl::Status& cause) {
  writer_.Stop();
  const absl::Status status = absl::UnavailableError(
      absl::StrCat("Penstock session closed: ", cause.message()));
  streams_.Close(status);
  events_->OnClosed(cause);
}

void Session::EndpointInput::OnPacket(absl::Span<const uint8_t> packet) {
  // The peer sent a malformed packet. Ignores the rest of this Poll().
  if (!is_lifeline_ && session_->path_.endpoint() == nullptr) return;
  session_->OnPacket(is_lifeline_, packet);
}

void Session::EndpointInput::OnReadDone(uint64_t cookie,
                                        const absl::Status& status) {
  session_->streams_.input().OnReadDone(cookie, status);
}

void Session::EndpointInput::OnBroken(const absl::Status& cause) {
  if (is_lifeline_) {
    session_->OnLifelineBroken(cause);
  } else {
    session_->path_.Lose(cause);
  }
}

}  // namespace session
}  // namespace penstock
