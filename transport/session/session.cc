// The life of a session: its beginning, its input and output, and its end.

#include "transport/session/session.h"

#include <time.h>

#include <chrono>
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

// Returns the time that the calling thread has spent on a core.
std::chrono::nanoseconds ThreadCpuTime() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) +
         std::chrono::nanoseconds(time.tv_nsec);
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
      recorder_(config_),
      stall_(config_.tuning, &counters_),
      ordered_(config_, &streams_, &pongs_, events),
      writer_(&sender_, &ordered_.order(), &counters_),
      pongs_(&writer_, &path_),
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

void Session::OnPacket(bool over_lifeline, absl::Span<const uint8_t> packet) {
  ++counters_.inputs;
  counters_.receiving = over_lifeline ? metrics::Fabric::kTcp : path_.fabric();
  if (!over_lifeline) ordered_.CountBytes(packet.size());
  while (!packet.empty() && !closed()) {
    absl::StatusOr<wire::Frame> frame = wire::TakeFrame(&packet);
    absl::Status status =
        frame.ok() ? sender_.OnAck(frame->header.ack) : frame.status();
    // Drops the fast path if it delivered a bad frame, which had no effect so
    // far. If the path has corrupted the frame, the peer sends the frame again
    // over the lifeline.
    if (!status.ok() && !over_lifeline) return path_.Lose(status);
    if (status.ok()) status = OnFrame(over_lifeline, *frame);
    if (status.ok()) status = budget_.Check();
    if (!status.ok()) return Close(status);
  }
}

absl::Status Session::OnFrame(bool over_lifeline, const wire::Frame& frame) {
  const wire::FrameType type = frame.header.type;
  if (type == wire::FrameType::kAck) return absl::OkStatus();
  const bool is_sequenced = wire::IsSequenced(type);
  if (!is_sequenced && !over_lifeline) {
    return absl::InvalidArgumentError("a control frame on a fast path");
  }
  if (type == wire::FrameType::kHello) return OnHello(frame.payload);
  if (!greeted()) {
    return absl::InvalidArgumentError("the peer did not say hello first");
  }
  return is_sequenced ? ordered_.OnFrame(frame) : path_.OnFrame(frame);
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
  path_.RingLifeline();
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
  // Limits the polls of the fast path, because the peer may send without end. A
  // poll delivers up to 64 packets, or a single lent message. There are up to
  // 1,024 lent messages. A poll of sockets delivers up to 1 MiB, and then the
  // time is the limit, because this thread holds the session's lock. The time
  // of other threads on the core does not count.
  constexpr int kMaxPolls = 2048;
  constexpr std::chrono::milliseconds kLimit(200);
  const std::chrono::nanoseconds end = ThreadCpuTime() + kLimit;
  for (int i = 0; i < kMaxPolls && Poll() && ThreadCpuTime() < end; ++i) {
  }
}

void Session::OnLifelineBroken(const absl::Status& cause) {
  DrainFastPath();
  Close(cause);
}

void Session::Flush() {
  SendAdded();
  // Handles a failure that was found while sending. No doorbell rings for this
  // failure, and all threads may be asleep. The path's data then goes over the
  // lifeline.
  if (path_.endpoint() != nullptr && path_.endpoint()->HasFailed()) {
    DrainFastPath();
    SendAdded();
  }
  path_.ReleaseLost();
}

void Session::SendAdded() {
  if (closed() || !started_) return;
  if (writer_.has_deferred()) {
    streams_.input().SendAwaited(/*all=*/!sender_.active()->SendWakesPeer());
  }
  const bool sends = sender_.has_output() || output().has_congested();
  if (sends) {
    lifeline_->BeginBatch();
    sender_.Flush();
    output().SendCongested();
  }
  ordered_.AcknowledgeIfDue(&sender_, path_.in_use());
  if (path_.TakeRing()) lifeline_->RingDoorbell();
  if (sends) lifeline_->EndBatch();
  if ((sends && !sender_.idle()) || stall_.ongoing()) {
    stall_.Observe(!closed() && !sender_.idle());
  }
}

void Session::Close(const absl::Status& cause) {
  if (closed()) return;
  if (started_) sender_.Flush();  // a reset or trailers may wait
  state_ = State::kClosed;
  stall_.Observe(false);
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
  ordered_.Stop();
  const absl::Status status = absl::UnavailableError(
      absl::StrCat("Penstock session closed: ", cause.message()));
  streams_.Close(status);
  events_->OnClosed(cause);
}

void Session::EndpointInput::OnPacket(absl::Span<const uint8_t> packet) {
  // Stops, because the peer sent a malformed packet and the path was dropped.
  // Ignores the rest of this Poll().
  if (!is_lifeline_ && session_->path_.endpoint() == nullptr) return;
  session_->OnPacket(is_lifeline_, packet);
}

void Session::EndpointInput::OnReadDone(uint64_t cookie,
                                        const absl::Status& status) {
  // Stops, because the path was lost in this Poll(). The reads of a lost path
  // begin again over the lifeline, with the same cookies.
  if (!is_lifeline_ && session_->path_.endpoint() == nullptr) return;
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
