#include "transport/grpc/transport.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "transport/grpc/grpc_executor.h"
#include "transport/grpc/metadata_codec.h"
#include "transport/grpc/polling/left_input.h"
#include "transport/grpc/stream.h"
#include "transport/grpc/transport_registry.h"
#include "transport/memory/device_ranges.h"

namespace penstock {
namespace core {
namespace {

connection::Config ConnectionConfig(const Transport::Config& config,
                                    grpc_endpoint* endpoint) {
  connection::Config result = config;
  result.peer = std::string(grpc_endpoint_get_peer(endpoint));
  result.devices = memory::DevicesOfProcess();
  result.keepalive = config.limits.keepalive;
  result.ping_police = config.limits.ping_police;
  result.max_receive_bytes = config.limits.max_receive_bytes;
  result.max_metadata_bytes = config.limits.max_metadata_bytes;
  result.max_streams = config.limits.max_streams;
  result.defers_answers = true;
  return result;
}

}  // namespace

void Transport::FinishAndUnlock() {
  // Sends first, because sending decides if the session is drained, and if the
  // session may read more.
  Flush(Now);
  // Closes before the next steps. The path's poller, the end of the connection
  // and the next read depend on the session's end.
  goaway_.CloseWhenDrained();
  Sync();
  input_.ReadOn();
  // Accepts without the lock, because gRPC accepts a stream by calling the
  // transport, which locks.
  if (acceptor_.HasBatch() && MayAccept() && !ended_.TooMany()) {
    UnlockAndAccept();
  } else {
    mu_.unlock();
  }
  Unref();  // the Section's reference, perhaps the last reference
}

Transport* Transport::Create(const Config& config, grpc_endpoint* endpoint,
                             grpc_core::SliceBuffer received, Settled settled) {
  auto* const transport =
      new Transport(config, endpoint, std::move(received), std::move(settled));
  transport->Register();
  return transport;
}

Transport::Transport(const Config& config, grpc_endpoint* endpoint,
                     grpc_core::SliceBuffer received, Settled settled)
    : connection::Connection(ConnectionConfig(config, endpoint), GrpcExecutor(),
                             std::make_unique<EndpointStream>(endpoint, this)),
      limits_(config.limits),
      stream_(static_cast<EndpointStream*>(stream())),
      socket_node_(grpc_core::MakeRefCounted<grpc_core::channelz::SocketNode>(
          std::string(grpc_endpoint_get_local_address(endpoint)), peer(),
          absl::StrCat("penstock ", peer()), config.security)),
      settled_(std::move(settled)),
      acceptor_(session_.get()),
      goaway_(this, session_.get(), &streams_, &acceptor_),
      pings_(session_.get()),
      input_(stream_, lifeline_, session_.get()) {
  vtable = Vtable();
  stream_->read_buffer()->Swap(&received);
  TransportRegistry::Get()->Add(socket_node_->uuid(), this);
}

Transport::~Transport() {
  TransportRegistry::Get()->Remove(socket_node_->uuid());
}

void Transport::Release() {
  grpc_core::ApplicationCallbackExecCtx callback_exec_ctx;
  grpc_core::ExecCtx exec_ctx;
  Unref();
}

void Transport::Enter(absl::FunctionRef<void()> work) {
  grpc_core::ApplicationCallbackExecCtx callback_exec_ctx;
  grpc_core::ExecCtx exec_ctx;
  Section section(this);
  work();
}

void Transport::Start() {
  Section section(this);
  if (session_->closed()) return;
  Begin([this] { socket_node_->RecordKeepaliveSent(); });
  input_.Start();
}

void Transport::Close(const absl::Status& why) {
  Section section(this);
  session_->Close(why);
}

bool Transport::TakesDeviceMemory() {
  Section section(this);
  return session_->path().TakesDeviceMemory();
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
  ended_.Add();
}

void Transport::OnConnectionClosed(const grpc_error_handle& error) {
  OnStreamClosed([&] {
    mu_.AssertHeld();
    return absl::UnavailableError(
        goaway_.peer_reason().empty()
            ? absl::StrCat("connection closed: ", error.message())
            : absl::StrCat("GOAWAY received: ", goaway_.peer_reason()));
  });
}

bool Transport::OnRead(grpc_error_handle error, bool may_block) {
  grpc_core::ExecCtx::Get()->InvalidateNow();  // as in PollInSection()
  if (!TryLock(may_block)) return false;
  {
    Section section(this, std::adopt_lock);
    if (error.ok() && stream_->is_shut_down()) {
      error = GRPC_ERROR_CREATE("the session ended");
    }
    if (error.ok()) error = input_.OnRead();
    if (!error.ok()) OnConnectionClosed(error);
    if (input_.TakePlaceToPoll()) {
      input_.StartPolling(
          [self = ShareAs<Transport>()] { return self->PollInput(); });
    }
  }
  poller_.PollUntilEmpty();
  Unref();
  return true;
}

bool Transport::OnWritten(grpc_error_handle error, bool may_block) {
  if (!TryLock(may_block)) return false;
  {
    Section section(this, std::adopt_lock);
    if (!error.ok()) OnConnectionClosed(error);
    lifeline_->OnWritten();
  }
  Unref();
  return true;
}

bool Transport::WriteLater() {
  holds_ = true;
  std::shared_ptr<HeldWrite> held = held_write_.lock();
  if (held == nullptr) {
    const std::shared_ptr<Transport> self = ShareAs<Transport>();
    held = HeldWrite::Start([self](HeldWrite::Moment moment) {
      bool goes_on = true;  // also while another thread holds the lock
      self->PollInSection(/*may_block=*/false, [&] {
        self->mu_.AssertHeld();
        self->lifeline_->WriteQueued(/*may_wait=*/false);
        if (moment == HeldWrite::Moment::kWait) return true;
        goes_on = std::exchange(self->holds_, false) &&
                  moment == HeldWrite::Moment::kTime;
        // The next WriteLater() makes the background thread call again.
        if (!goes_on) self->held_write_.reset();
        return true;
      });
      return goes_on;
    });
    if (held == nullptr) return false;
    held_write_ = held;
  }
  BeforeWait::Set(held);
  return true;
}

bool Transport::PollPath() {
  return PollInSection(/*may_block=*/true, [this] {
    mu_.AssertHeld();
    return session_->Poll();
  });
}

bool Transport::PollInput() {
  // Does not wait for the lock. epoll reports the input, too.
  return PollInSection(/*may_block=*/false, [this] {
    mu_.AssertHeld();
    const absl::StatusOr<bool> any = input_.Poll();
    if (!any.ok()) OnConnectionClosed(any.status());
    // The thread must not sleep now even without input: the end of the Section
    // may schedule closures, which the thread runs only before it sleeps.
    return true;
  });
}

bool Transport::PollInSection(bool may_block, absl::FunctionRef<bool()> poll) {
  grpc_core::ExecCtx* const context = grpc_core::ExecCtx::Get();
  if (context == nullptr) {  // not a thread of gRPC's
    grpc_core::ApplicationCallbackExecCtx callback_exec_ctx;
    grpc_core::ExecCtx exec_ctx;
    return PollInSection(may_block, poll);
  }
  // Updates the clock, because deadlines of new calls count from the cached
  // time. The cached time may be old, for example after the process was stopped
  // and continued.
  context->InvalidateNow();
  if (!TryLock(may_block)) return false;
  Section section(this, std::adopt_lock);
  return poll();
}

void Transport::LeaveInput() { core::LeaveInput(); }

void Transport::OnPathChanged(const std::shared_ptr<fabric::Endpoint>& path) {
  for (const auto& waker : wakers_) waker->Stop();
  wakers_.clear();
  if (path == nullptr || path->wakeup_fds().empty()) return;
  std::shared_ptr<Transport> self = ShareAs<Transport>();
  wakers_ =
      PathWaker::Start(path, [self, path] { self->poller_.OnWakeup(path); });
}

void Transport::OnSettled(const absl::Status& status) {
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

void Transport::OnEnded(const absl::Status& cause) {
  goaway_.OnEnded(cause);
  pings_.End(cause);
}

void Transport::EndStream() {
  stream_->Shutdown(GRPC_ERROR_CREATE("Penstock session closed"));
}

void Transport::OnDestroyed() {
  if (ended_.Remove()) {
    Section section(this);  // accepts the waiting streams
  }
}

// Unlocks before accepting, because gRPC calls init_stream, which locks.
void Transport::UnlockAndAccept() {
  const StreamAcceptor::Batch batch = acceptor_.TakeBatch();
  mu_.unlock();
  for (uint32_t stream : batch.streams) {
    StreamAcceptor::Give(this, batch.accept, stream);
    Section section(this);
    acceptor_.OnGiven(stream);
  }
}

void Transport::OnStreamOpened(uint32_t stream) {
  if (goaway_.OnStreamOpened(stream)) {
    acceptor_.OnOpened(stream);
  } else {
    session_->streams().Detach(stream);
  }
}

void Transport::OnGoaway(uint32_t last_stream, const absl::Status& status) {
  goaway_.OnGoaway(last_stream, status);
}

void Transport::OnPing() {
  if (!is_client() && !liveness_.MayPing()) goaway_.EndForPings();
}

void Transport::OnPong(uint64_t cookie) {
  if (!goaway_.OnPong(cookie)) pings_.OnPong(cookie);
}

}  // namespace core
}  // namespace penstock
