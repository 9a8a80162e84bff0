#include "transport/grpc/transport.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/transport/error_utils.h"
#include "transport/base/log.h"
#include "transport/base/token.h"
#include "transport/grpc/stream.h"
#include "transport/grpc/transport_registry.h"

namespace penstock {
namespace core {
namespace {

session::Config SessionConfig(const Transport::Config& config) {
  session::Config result;
  result.is_client = config.is_client;
  result.offers = SidePaths::Offers(config.settings);
  result.max_receive_bytes = config.max_receive_bytes;
  if (!config.is_client) {
    absl::StatusOr<std::string> token = base::NewToken();
    if (token.ok()) result.token = *std::move(token);
  }
  return result;
}

// Both sides say hello as soon as they have negotiated: a few round trips, on
// a bad day with some packets lost.
constexpr grpc_core::Duration kHelloLimit = grpc_core::Duration::Seconds(5);

}  // namespace

Transport::Section::Section(Transport* transport) : transport_(transport) {
  transport_->Ref();
  transport_->mu_.Lock();
}

Transport::Section::~Section() {
  transport_->session_->Flush();
  transport_->CloseWhenDrained();
  transport_->SyncPathPoller();
  transport_->ShutdownWhenWritten();
  std::vector<uint32_t> opened;
  if (transport_->accept_fn_ != nullptr) opened.swap(transport_->opened_);
  transport_->accepting_ += opened.size();
  transport_->mu_.Unlock();
  for (uint32_t id : opened) transport_->AcceptStream(id);
  transport_->Unref();
}

Transport* Transport::Create(const Config& config, grpc_endpoint* endpoint,
                             grpc_core::SliceBuffer received, Settled settled) {
  return new Transport(config, endpoint, std::move(received),
                       std::move(settled));
}

Transport::Transport(const Config& config, grpc_endpoint* endpoint,
                     grpc_core::SliceBuffer received, Settled settled)
    : config_(config),
      peer_(grpc_endpoint_get_peer(endpoint)),
      socket_node_(grpc_core::MakeRefCounted<grpc_core::channelz::SocketNode>(
          std::string(grpc_endpoint_get_local_address(endpoint)), peer_,
          absl::StrCat("penstock ", peer_), nullptr)),
      stream_(endpoint, this),
      poller_(this),
      settled_(std::move(settled)),
      state_("penstock", GRPC_CHANNEL_READY) {
  vtable = Vtable();
  auto lifeline = std::make_unique<fabric::tcp::Endpoint>(&stream_);
  lifeline_ = lifeline.get();
  session_ = std::make_unique<session::Session>(SessionConfig(config_),
                                                std::move(lifeline), this);
  stream_.read_buffer()->Swap(&received);
  TransportRegistry::Get()->Add(socket_node_->uuid(), this);
}

Transport::~Transport() = default;

void Transport::Unref() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  TransportRegistry::Get()->Remove(socket_node_->uuid());
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
  if (!config_.is_client) {
    std::shared_ptr<Transport> self = Share();
    side_paths_.Listen(
        session_->config().offers, session_->config().token,
        [self](const std::string& fabric,
               absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path) {
          self->OnSidePath(fabric, std::move(path));
        });
  }
  session_->Start();
  StartHelloTimer();
  DeliverReadBuffer();
  if (!session_->closed()) stream_.Read();
}

void Transport::StartHelloTimer() {
  Ref();
  hello_timer_.Start(kHelloLimit, [this](bool expired) {
    {
      Section section(this);
      hello_timer_.Ended();
      if (expired && !session_->greeted()) {
        session_->Close(absl::DeadlineExceededError(absl::StrCat(
            "the peer said no hello within ", kHelloLimit.seconds(), " s")));
      }
    }
    Unref();
  });
}

void Transport::Close(const absl::Status& why) {
  Section section(this);
  session_->Close(why);
}

session::PathDescription Transport::DescribePath() {
  grpc_core::MutexLock lock(&mu_);
  return session_->DescribePath();
}

session::Counters Transport::counters() {
  grpc_core::MutexLock lock(&mu_);
  return session_->counters();
}

bool Transport::AcceptsStreams() const {
  // Ids are used once; a connection that ran out of them drains.
  return !going_away_ && !session_->closed() && next_stream_ != UINT32_MAX;
}

void Transport::AddStream(Stream* stream) { streams_[stream->id()] = stream; }

void Transport::RemoveStream(Stream* stream) { streams_.erase(stream->id()); }

bool Transport::PollPath() {
  Section section(this);
  return session_->Poll();
}

// After a doorbell: nobody else may be about to poll, so all that has come is
// taken in, with room for others between two bounded amounts.
void Transport::PollUntilEmpty() {
  std::shared_ptr<fabric::Endpoint> path;
  {
    grpc_core::MutexLock lock(&mu_);
    path = session_->fast_path();
  }
  if (path == nullptr || !path->HasInput()) return;
  PollPath();
  if (path->HasInput()) SchedulePolling();
}

void Transport::SchedulePolling() {
  Ref();
  grpc_core::ExecCtx::Run(DEBUG_LOCATION,
                          grpc_core::NewClosure([this](grpc_error_handle) {
                            PollUntilEmpty();
                            Unref();
                          }),
                          absl::OkStatus());
}

void Transport::OnSidePath(
    const std::string& fabric,
    absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path) {
  grpc_core::ApplicationCallbackExecCtx callback_exec_ctx;
  grpc_core::ExecCtx exec_ctx;
  Section section(this);
  if (path.ok()) {
    session_->AddFastPath(fabric, *std::move(path));
  } else {
    session_->FastPathFailed(path.status());
  }
}

void Transport::SyncPathPoller() {
  if (poller_.Watch(session_->fast_path())) SchedulePolling();
}

// After a GOAWAY the connection ends with its last call, but not before the
// peer has all of it.
void Transport::CloseWhenDrained() {
  if (!going_away_ || session_->closed()) return;
  if (!streams_.empty() || !opened_.empty() || accepting_ > 0) return;
  if (!session_->drained()) return;
  session_->Close(absl::UnavailableError("drained after GOAWAY"));
}

void Transport::ShutdownWhenWritten() {
  if (shutdown_when_written_ && lifeline_->idle()) {
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

void Transport::OnRead(grpc_error_handle error) {
  {
    Section section(this);
    if (!error.ok()) {
      lifeline_->OnClosed(absl::UnavailableError(
          absl::StrCat("connection closed: ", error.message())));
    } else {
      DeliverReadBuffer();
      if (!session_->closed()) stream_.Read();
    }
  }
  PollUntilEmpty();
  Unref();
}

void Transport::OnWritten(grpc_error_handle error) {
  {
    Section section(this);
    if (!error.ok()) {
      lifeline_->OnClosed(absl::UnavailableError(
          absl::StrCat("connection closed: ", error.message())));
    }
    lifeline_->OnWritten();
  }
  Unref();
}

void Transport::AcceptStream(uint32_t id) {
  accept_fn_(accept_arg_, this,
             reinterpret_cast<const void*>(static_cast<uintptr_t>(id)));
  Section section(this);
  --accepting_;
  if (!session_->IsWaiting(id)) return;
  // gRPC takes no more calls: it is shutting down.
  session_->SendReset(id, absl::UnavailableError("server is shutting down"));
  session_->DetachStream(id);
}

void Transport::OnStreamOpened(uint32_t stream) {
  if (going_away_) {  // the peer was told that these are not served
    session_->DetachStream(stream);
    return;
  }
  last_opened_ = stream;
  opened_.push_back(stream);
}

void Transport::OnGoaway(uint32_t last_stream, const absl::Status& status) {
  if (!config_.is_client) return;
  going_away_ = true;
  state_.SetState(GRPC_CHANNEL_TRANSIENT_FAILURE,
                  absl::UnavailableError(
                      absl::StrCat("GOAWAY received: ", status.message())),
                  "goaway");
  std::vector<Stream*> unseen;
  for (auto it = streams_.upper_bound(last_stream); it != streams_.end();
       ++it) {
    unseen.push_back(it->second);
  }
  for (Stream* stream : unseen) {
    stream->CloseUnseen(grpc_error_set_int(
        GRPC_ERROR_CREATE("GOAWAY received before the call was seen"),
        grpc_core::StatusIntProperty::kRpcStatus, GRPC_STATUS_UNAVAILABLE));
  }
}

void Transport::OnPong(uint64_t cookie) {
  auto it = pings_.find(cookie);
  if (it == pings_.end()) return;
  grpc_core::ExecCtx::Run(DEBUG_LOCATION, it->second, absl::OkStatus());
  pings_.erase(it);
}

void Transport::OnConnectWanted(const std::string& fabric,
                                const std::string& offer,
                                const std::string& token) {
  std::shared_ptr<Transport> self = Share();
  side_paths_.Connect(
      fabric, offer, token,
      [self](const std::string& name,
             absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path) {
        self->OnSidePath(name, std::move(path));
      });
}

absl::Status Transport::CheckPolicy(
    const session::PathDescription& path) const {
  if (config_.settings.policy != Policy::kRequire ||
      config_.settings.Allows(path.fabric)) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      "Penstock policy is \"", config_.settings.ToString(), "\", but ",
      path.reason, " (PENSTOCK_POLICY=prefer would fall back to tcp)"));
}

void Transport::OnPathChosen(const session::PathDescription& path) {
  base::LogInfo(absl::StrCat(
      config_.is_client ? "connection to " : "connection from ", peer_, ": ",
      path.fabric,
      path.detail.empty() ? "" : absl::StrCat(" (", path.detail, ")"),
      path.reason.empty()
          ? ""
          : absl::StrCat("; not better because ", path.reason)));
  hello_timer_.Cancel();
  const absl::Status status = CheckPolicy(path);
  if (!status.ok()) session_->Close(status);
  Settle(status);
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
  if (!absl::IsUnavailable(cause)) {  // not just an end
    base::LogWarning(
        absl::StrCat("session with ", peer_, " ended: ", cause.ToString()));
  }
  Settle(cause);
  hello_timer_.Cancel();
  side_paths_.Cancel();
  shutdown_when_written_ = true;
  state_.SetState(GRPC_CHANNEL_SHUTDOWN, cause, "session closed");
  for (auto& ping : pings_) {
    grpc_core::ExecCtx::Run(DEBUG_LOCATION, ping.second, cause);
  }
  pings_.clear();
}

}  // namespace core
}  // namespace penstock
