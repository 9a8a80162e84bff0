#include "transport/grpc/transport.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "transport/base/log.h"
#include "transport/connection/session_setup.h"
#include "transport/grpc/metadata_codec.h"
#include "transport/grpc/stream.h"
#include "transport/grpc/transport_registry.h"
#include "transport/memory/device_ranges.h"
#include "transport/paths/short_lives.h"
#include "transport/progress/fork_count.h"
#include "transport/session/refusal.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace core {
namespace {

session::Config SessionConfig(const Transport::Config& config,
                              const paths::SidePaths& side_paths) {
  session::Config result = connection::SessionConfig(
      config.settings, config.is_client, config.version, side_paths);
  result.max_receive_bytes = config.limits.max_receive_bytes;
  result.max_streams = config.limits.max_streams;
  result.max_metadata_bytes = config.limits.max_metadata_bytes;
  return result;
}

grpc_core::Duration ToGrpc(absl::Duration duration) {
  return grpc_core::Duration::Milliseconds(absl::ToInt64Milliseconds(duration));
}

// The cookie of our own pings. Those of gRPC's pings begin at 1.
constexpr uint64_t kKeepalivePing = 0;

}  // namespace

Transport::Section::Section(Transport* transport) : transport_(transport) {
  transport_->Ref();
  transport_->mu_.lock();
  if (transport_->IsForeign()) {
    transport_->session_->Abandon(absl::UnavailableError("the process forked"));
  }
}

bool Transport::IsForeign() const {
  return fork_count_ != progress::ForkCount();
}

void Transport::FinishAndUnlock() {
  // First send what was added, all at once, and perhaps a heartbeat. The rest
  // depends on what is left then: whether the session has drained, what the
  // keepalive has seen, whether more may be read.
  SyncHeartbeat();
  session_->Flush();
  liveness_.Observe(session_->counters());
  // This may close the session, so do it before what depends on that: the
  // poller of the path, the end of the connection, the next read.
  CloseWhenDrained();
  SyncPathPoller();
  ShutdownWhenWritten();
  ReadOn();
  SyncSettleTimer();
  // gRPC accepts a stream by calling into the transport, which locks.
  if (opened_.empty() || !MayAccept()) {
    mu_.unlock();
  } else {
    UnlockAndAccept();
  }
  Unref();  // the Section's reference, perhaps the last one
}

Transport* Transport::Create(const Config& config, grpc_endpoint* endpoint,
                             grpc_core::SliceBuffer received, Settled settled) {
  return new Transport(config, endpoint, std::move(received),
                       std::move(settled));
}

Transport::Transport(const Config& config, grpc_endpoint* endpoint,
                     grpc_core::SliceBuffer received, Settled settled)
    : fork_count_(progress::ForkCount()),
      config_(config),
      peer_(grpc_endpoint_get_peer(endpoint)),
      socket_node_(grpc_core::MakeRefCounted<grpc_core::channelz::SocketNode>(
          std::string(grpc_endpoint_get_local_address(endpoint)), peer_,
          absl::StrCat("penstock ", peer_), config.security)),
      stream_(endpoint, this),
      side_paths_(config.settings, config.is_private,
                  memory::DevicesOfProcess()),
      lifeline_(new fabric::tcp::Endpoint(&stream_)),
      session_(std::make_unique<session::Session>(
          SessionConfig(config_, side_paths_),
          std::unique_ptr<fabric::Endpoint>(lifeline_), this)),
      departure_(session_.get()),
      poller_(this),
      liveness_(config.limits),
      heartbeat_(
          connection::MakeHeartbeat(config.settings, config.limits.keepalive)),
      defers_path_(config.is_client &&
                   config.settings.policy != Policy::kRequire &&
                   paths::ShortLives::OfProcess()->AreUsual(began_)),
      settled_(std::move(settled)),
      state_("penstock", GRPC_CHANNEL_READY) {
  vtable = Vtable();
  stream_.read_buffer()->Swap(&received);
  TransportRegistry::Get()->Add(socket_node_->uuid(), this);
  counted_ = std::make_unique<metrics::Registration>(this);
}

Transport::~Transport() = default;

void Transport::Unref() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  TransportRegistry::Get()->Remove(socket_node_->uuid());
  counted_ = nullptr;
  delete this;
}

bool Transport::RefUnlessDead() {
  int refs = refs_.load(std::memory_order_relaxed);
  while (refs > 0) {
    if (refs_.compare_exchange_weak(refs, refs + 1)) return true;
  }
  return false;
}

std::shared_ptr<Transport> Transport::Share() {
  Ref();
  return std::shared_ptr<Transport>(this, [](Transport* transport) {
    grpc_core::ApplicationCallbackExecCtx callback_exec_ctx;
    grpc_core::ExecCtx exec_ctx;
    transport->Unref();
  });
}

void Transport::Start() {
  Section section(this);
  if (session_->closed()) return;
  if (!config_.is_client) {
    side_paths_.Listen(session_->config().offers, session_->config().token,
                       OnSidePath());
  }
  session_->Start();
  StartTimer(&hello_timer_, ToGrpc(connection::kHelloLimit),
             &Transport::OnHelloTimer);
  StartKeepaliveTimer();
  DeliverReadBuffer();
  wants_read_ = true;
}

// Does not read while the peer leaves our answers unread: its next requests
// would add to them. gRPC's HTTP/2 stops reading for the same reason.
void Transport::ReadOn() {
  if (!wants_read_ || session_->closed() || !session_->reads()) return;
  wants_read_ = false;
  stream_.Read();
}

// Calls `expired` under the lock.
void Transport::StartTimer(Timer* timer, grpc_core::Duration delay,
                           void (Transport::*expired)()) {
  Ref();
  timer->Start(delay, [this, timer, expired](bool is_over) {
    {
      Section section(this);
      timer->Ended();
      if (is_over) (this->*expired)();
    }
    Unref();
  });
}

void Transport::OnHelloTimer() {
  if (session_->greeted()) return;
  session_->Close(connection::NoHelloError());
}

void Transport::OnLingerTimer() {
  stream_.Shutdown(GRPC_ERROR_CREATE("the peer did not read in time"));
}

void Transport::StartKeepaliveTimer() {
  if (!liveness_.enabled()) return;
  StartTimer(&keepalive_timer_, liveness_.UntilTimer(),
             &Transport::OnKeepaliveTimer);
}

void Transport::OnKeepaliveTimer() {
  if (session_->closed()) return;
  switch (liveness_.OnTimer(!streams_.empty())) {
    case connection::Keepalive::Action::kPeerIsDead:
      return session_->Close(
          absl::UnavailableError("keepalive watchdog timeout"));
    case connection::Keepalive::Action::kPing:
      socket_node_->RecordKeepaliveSent();
      session_->SendPing(kKeepalivePing);
      break;
    case connection::Keepalive::Action::kNone:
      break;
  }
  StartKeepaliveTimer();
}

void Transport::Close(const absl::Status& why) {
  Section section(this);
  session_->Close(why);
}

std::shared_ptr<metrics::Source> Transport::Keep() {
  if (!RefUnlessDead()) return nullptr;
  std::shared_ptr<Transport> share = Share();
  refs_.fetch_sub(1, std::memory_order_relaxed);  // the share has its own
  return share;
}

void Transport::Collect(metrics::Snapshot* snapshot) {
  base::MutexLock lock(&mu_);
  session_->Collect(snapshot);
}

bool Transport::TakesDeviceMemory() {
  Section section(this);
  return session_->takes_device_memory();
}

bool Transport::Describe(metrics::ConnectionInfo* info) {
  info->peer = peer_;
  base::MutexLock lock(&mu_);
  return session_->Describe(info);
}

bool Transport::AcceptsStreams() const {
  mu_.AssertHeld();
  return !departure_.gone() && !session_->closed();
}

absl::string_view Transport::Encode(const grpc_metadata_batch& metadata) {
  mu_.AssertHeld();
  EncodeMetadata(
      metadata, &sent_entries_,
      [this](uint8_t number, absl::string_view entry) {
        mu_.AssertHeld();
        session_->SendEntry(number, entry);
      },
      &encoded_);
  return encoded_;
}

absl::Status Transport::OnEntry(uint32_t number, absl::string_view entry) {
  return received_entries_.Add(number, entry);
}

void Transport::AddStream(Stream* stream) {
  mu_.AssertHeld();
  streams_.Add(stream);
}

void Transport::RemoveStream(Stream* stream) {
  mu_.AssertHeld();
  streams_.Remove(stream);
  ended_.fetch_add(1, std::memory_order_relaxed);
}

void Transport::ShutdownWhenWritten() {
  if (shutdown_when_written_ && lifeline_->idle()) {
    linger_timer_.Cancel();
    stream_.Shutdown(GRPC_ERROR_CREATE("Penstock session closed"));
  }
}

void Transport::DeliverReadBuffer() {
  grpc_core::SliceBuffer* buffer = stream_.read_buffer();
  for (size_t i = 0; i < buffer->Count() && !session_->closed(); ++i) {
    const grpc_core::Slice slice = buffer->RefSlice(i);
    lifeline_->OnBytes({slice.data(), slice.size()});
  }
  buffer->Clear();
}

void Transport::OnConnectionClosed(const grpc_error_handle& error) {
  // The peer may have sent the reason, perhaps over the fast path.
  session_->DrainFastPath();
  lifeline_->OnClosed(absl::UnavailableError(
      departure_.peer_reason().empty()
          ? absl::StrCat("connection closed: ", error.message())
          : absl::StrCat("GOAWAY received: ", departure_.peer_reason())));
}

void Transport::OnRead(grpc_error_handle error) {
  grpc_core::ExecCtx::Get()->InvalidateNow();  // as in PollPath()
  {
    Section section(this);
    if (!error.ok()) {
      OnConnectionClosed(error);
    } else {
      DeliverReadBuffer();
      wants_read_ = true;
    }
  }
  PollUntilEmpty();
  Unref();
}

void Transport::OnWritten(grpc_error_handle error) {
  {
    Section section(this);
    if (!error.ok()) OnConnectionClosed(error);
    lifeline_->OnWritten();
  }
  Unref();
}

void Transport::Settle(const absl::Status& status) {
  if (settled_ == nullptr) return;
  auto* settled = new Settled(std::move(settled_));
  settled_ = nullptr;
  grpc_core::ExecCtx::Run(
      DEBUG_LOCATION,
      grpc_core::NewClosure([settled, status](grpc_error_handle) {
        (*settled)(status);
        delete settled;
      }),
      absl::OkStatus());
}

void Transport::OnClosed(const absl::Status& cause) {
  if (!absl::IsUnavailable(cause)) {  // not an ordinary end
    base::LogWarning(
        absl::StrCat("session with ", peer_, " ended: ", cause.ToString()));
  }
  Settle(cause);
  if (config_.is_client) {
    paths::ShortLives::OfProcess()->OnEnd(began_, base::SteadyNow());
  }
  hello_timer_.Cancel();
  settle_timer_.Cancel();
  defer_timer_.Cancel();
  config_.half_open = nullptr;
  keepalive_timer_.Cancel();
  heartbeat_timer_.Cancel();
  retry_timer_.Cancel();
  drain_timer_.Cancel();
  side_paths_.Cancel();
  shutdown_when_written_ = true;
  StartTimer(&linger_timer_, ToGrpc(connection::kLingerLimit),
             &Transport::OnLingerTimer);
  // In the child of a fork the channel would connect anew, and its descriptors
  // go into an epoll set that is the parent's, too, which then follows the
  // child's pointers.
  if (!IsForeign()) {
    TellChannel(GRPC_CHANNEL_SHUTDOWN, cause);
  }
  for (auto& ping : pings_) {
    grpc_core::ExecCtx::Run(DEBUG_LOCATION, ping.second, cause);
  }
  pings_.clear();
}

}  // namespace core
}  // namespace penstock
