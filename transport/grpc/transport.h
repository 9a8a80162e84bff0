// The grpc_transport that runs gRPC's streams over a Penstock session.

#ifndef PENSTOCK_TRANSPORT_GRPC_TRANSPORT_H_
#define PENSTOCK_TRANSPORT_GRPC_TRANSPORT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "src/core/lib/channel/channelz.h"
#include "src/core/lib/iomgr/endpoint.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "src/core/lib/transport/connectivity_state.h"
#include "src/core/lib/transport/transport.h"
#include "src/core/lib/transport/transport_impl.h"
#include "transport/base/limited_log.h"
#include "transport/base/mutex.h"
#include "transport/base/steady_time.h"
#include "transport/connection/heartbeat.h"
#include "transport/connection/path_backoff.h"
#include "transport/connection/path_poller.h"
#include "transport/fabric/tcp/endpoint.h"
#include "transport/grpc/channel_limits.h"
#include "transport/grpc/endpoint_stream.h"
#include "transport/grpc/grpc_abi.h"
#include "transport/grpc/late_release.h"
#include "transport/grpc/liveness.h"
#include "transport/grpc/metadata_table.h"
#include "transport/grpc/path_waker.h"
#include "transport/grpc/stream_list.h"
#include "transport/grpc/timer.h"
#include "transport/metrics/registry.h"
#include "transport/paths/half_open.h"
#include "transport/paths/side_paths.h"
#include "transport/session/departure.h"
#include "transport/session/session.h"
#include "transport/settings/settings.h"

namespace penstock {
// Not named after its folder: within a namespace penstock::grpc, `grpc` would
// no longer mean gRPC's namespace.
namespace core {

class Stream;

// Owns the session, and the connection on which it runs. Thread-safe: one mutex
// guards everything. Call it in an ExecCtx. Closures go to the ExecCtx, so none
// runs under the mutex.
//
// Reference-counted; the last Unref() destroys it. gRPC, or the handshaker that
// made it, holds the first reference until grpc_transport_destroy(). Each
// stream, the read and the write under way, timers, and attempts to connect a
// path hold one each.
class Transport final : public grpc_transport,
                        public EndpointStreamEvents,
                        public connection::PathPoller::Owner,
                        public metrics::Source,
                        public session::SessionEvents {
 public:
  // Called once, from an ExecCtx, without locks. OK: a path is chosen that
  // satisfies the settings. Otherwise the session is closed, for that reason.
  using Settled = std::function<void(const absl::Status&)>;

  struct Config {
    bool is_client = false;
    // Which version of the protocol the two sides have agreed on.
    uint8_t version = wire::kVersion;
    Settings settings;
    ChannelLimits limits;
    // PromisesPrivacy() of the security handshake's result.
    bool is_private = false;
    // On a server only. Given back when a path is chosen or the session ends.
    paths::HalfOpen::Place half_open;
    // Shown by channelz. May be null.
    grpc_core::RefCountedPtr<grpc_core::channelz::SocketNode::Security>
        security;
  };

  // Returns a transport that has not started. Takes ownership of `endpoint`.
  // `received` are the bytes that came behind the negotiation. `settled` may be
  // empty.
  static Transport* Create(const Config& config, grpc_endpoint* endpoint,
                           grpc_core::SliceBuffer received, Settled settled);
  static Transport* From(grpc_transport* transport) {
    return static_cast<Transport*>(transport);
  }
  // Whether `transport` is one of ours, for From().
  static bool IsOurs(const grpc_transport& transport) {
    return transport.vtable == Vtable();
  }

  // Says hello and starts reading, unless the session is closed. Call it once.
  void Start();
  // Ends the session and all streams, with the reason.
  void Close(const absl::Status& why);
  // Whether a message in the memory of a device would be sent from there now,
  // without a copy to the host.
  bool TakesDeviceMemory();
  // For metrics, and those who ask.
  void Collect(metrics::Snapshot* snapshot) override;
  bool Describe(metrics::ConnectionInfo* info) override;
  // Returns the node for the connection in channelz, which counts its streams
  // and messages. Its id is the transport's number in the registry.
  const grpc_core::RefCountedPtr<grpc_core::channelz::SocketNode>& socket_node()
      const {
    return socket_node_;
  }

  // For streams. Call these under the lock, except for OnDestroyed().
  session::Session* session() {
    mu_.AssertHeld();
    return session_.get();
  }
  bool is_client() const { return config_.is_client; }
  const std::string& peer() const { return peer_; }
  const ChannelLimits& limits() const { return config_.limits; }
  // Encodes metadata, and sends new entries of its table to the peer. The
  // result is valid until the next call.
  absl::string_view Encode(const grpc_metadata_batch& metadata);
  const ReceivedEntries& received_entries() const {
    mu_.AssertHeld();
    return received_entries_;
  }
  // Whether this is a copy in the child of a fork.
  bool IsForeign() const;
  // Whether a client may open another stream on this connection.
  bool AcceptsStreams() const;
  // Whether gRPC's channel is about to hear that this connection is left. Until
  // then it may send further calls here.
  bool IsTellingChannel() const {
    mu_.AssertHeld();
    return telling_ == Telling::kUnderWay;
  }
  // Calls the stream's CloseHeld() when the channel has heard. Needs
  // IsTellingChannel().
  void CloseOnceTold(Stream* stream);
  uint32_t NextStreamId();
  void AddStream(Stream* stream);
  void RemoveStream(Stream* stream);
  // Call when gRPC has destroyed a stream, without the lock.
  void OnDestroyed();
  // Call when the server has refused a client's stream.
  void OnRefused();

  // For pollers and side paths.
  bool PollPath() override;
  bool MayGiveUpPath() const override;
  void GiveUpPath(const absl::Status& why) override;
  void Ref() override { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() override;
  // Takes a reference for the registry, whose caller has none. Returns false if
  // the transport is being destroyed.
  bool RefUnlessDead();

 private:
  // Holds the lock and a reference, and ends with FinishAndUnlock(). In the
  // child of a fork, where connection and paths are the parent's, abandons the
  // session first: so whatever is done under the lock finds it closed.
  class ABSL_SCOPED_LOCKABLE Section {
   public:
    explicit Section(Transport* transport)
        ABSL_EXCLUSIVE_LOCK_FUNCTION(transport->mu_);
    ~Section() ABSL_UNLOCK_FUNCTION() { transport_->FinishAndUnlock(); }

   private:
    LateRelease late_release_;  // destroyed last, after unlocking
    Transport* const transport_;
  };
  // The functions of the vtable: transport_vtable.cc.
  struct Operations;

  Transport(const Config& config, grpc_endpoint* endpoint,
            grpc_core::SliceBuffer received, Settled settled);
  ~Transport() override;

  static const grpc_transport_vtable* Vtable();
  // Sends what was added under the lock, does what follows from it, and
  // unlocks.
  void FinishAndUnlock() ABSL_UNLOCK_FUNCTION(mu_);
  // Returns a reference that may be dropped on any thread, even outside an
  // ExecCtx.
  std::shared_ptr<Transport> Share();
  // The function with which gRPC accepts streams. Once gRPC has taken it back,
  // and on_consumed has run, gRPC frees what `argument` points to. So that
  // closure waits until no thread is in `function` any more.
  struct Acceptor {
    void (*function)(void*, grpc_transport*, const void*) = nullptr;
    void* argument = nullptr;
  };
  void SetAcceptor(const Acceptor& acceptor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Unlocks, and gives gRPC the streams that the peer has opened.
  void UnlockAndAccept() ABSL_UNLOCK_FUNCTION(mu_);
  void AcceptStream(const Acceptor& acceptor, uint32_t id);
  bool MayAccept() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasTooManyEnded() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RefuseStream(uint32_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RefuseOpened() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Runs on_consumed of a transport operation, now or later; see Acceptor.
  void Consume(grpc_closure* closure) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LogPath(const session::PathDescription& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Settle(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ShutdownWhenWritten() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // transport_goaway.cc
  void BeginGoaway(const grpc_error_handle& error)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Disconnect(const grpc_error_handle& error)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnDrainTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SlowDown(absl::Status* state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CloseUnseenStreams(uint32_t last_stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CloseBlockedStreams() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellChannel(grpc_connectivity_state state, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AwaitChannel() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnChannelTold() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Leave(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CloseWhenDrained() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void SyncPathPoller() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Limits how many amounts of input a thread delivers in a row after a
  // doorbell: of small messages about as many as a turn has time for.
  static constexpr int kPortions = 2;
  void SchedulePolling() override { SchedulePolling(kPortions); }
  void SchedulePolling(int portions);
  void PollUntilEmpty(int portions = kPortions);
  void OnPathWakeup();
  void StartTimer(Timer* timer, grpc_core::Duration delay,
                  void (Transport::*expired)())
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnHelloTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SyncSettleTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnSettleTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReadOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnKeepaliveTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StartKeepaliveTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SyncHeartbeat() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StartHeartbeatTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnHeartbeatTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnLingerTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnRetryTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnDeferTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RetryPathLater() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the callback for the fabrics, which they call on their threads.
  paths::SidePaths::Done OnSidePath() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddSidePath(uint32_t epoch, const std::string& fabric,
                   absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path);
  void DeliverReadBuffer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnConnectionClosed(const grpc_error_handle& error)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  std::shared_ptr<metrics::Source> Keep() override;

  void OnRead(grpc_error_handle error) override;
  void OnWritten(grpc_error_handle error) override;

  void OnStreamOpened(uint32_t stream) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnGoaway(uint32_t last_stream, const absl::Status& status) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnPing() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnPong(uint64_t cookie) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status OnEntry(uint32_t number, absl::string_view entry) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnConnectWanted(const std::string& fabric, const std::string& offer,
                       const std::string& token) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnListenWanted() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnPathChosen(const session::PathDescription& path) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnClosed(const absl::Status& cause) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const uint32_t fork_count_;
  const absl::Time began_ = base::SteadyNow();
  Config config_;
  const std::string peer_;
  const grpc_core::RefCountedPtr<grpc_core::channelz::SocketNode> socket_node_;
  std::atomic<int> refs_{1};

  // Not gRPC's mutex, which checks for deadlocks with each use.
  base::Mutex mu_;
  EndpointStream stream_;
  paths::SidePaths side_paths_;
  fabric::tcp::Endpoint* lifeline_;  // owned by session_
  std::unique_ptr<session::Session> session_ ABSL_GUARDED_BY(mu_);
  session::Departure departure_ ABSL_GUARDED_BY(mu_);
  connection::PathPoller poller_;
  std::shared_ptr<fabric::Endpoint> woken_path_
      ABSL_GUARDED_BY(mu_);  // the path that wakers_ watch
  std::vector<std::shared_ptr<PathWaker>> wakers_ ABSL_GUARDED_BY(mu_);
  Liveness liveness_ ABSL_GUARDED_BY(mu_);
  connection::Heartbeat heartbeat_ ABSL_GUARDED_BY(mu_);
  Timer hello_timer_ ABSL_GUARDED_BY(mu_);
  Timer settle_timer_ ABSL_GUARDED_BY(mu_);
  uint32_t settle_epoch_ ABSL_GUARDED_BY(mu_) =
      0;  // of the attempt that settle_timer_ limits
  Timer keepalive_timer_ ABSL_GUARDED_BY(mu_);
  Timer heartbeat_timer_ ABSL_GUARDED_BY(mu_);
  Timer retry_timer_ ABSL_GUARDED_BY(mu_);
  Timer linger_timer_ ABSL_GUARDED_BY(mu_);
  Timer drain_timer_ ABSL_GUARDED_BY(mu_);
  Timer defer_timer_ ABSL_GUARDED_BY(mu_);
  // Whether the first side path waits for defer_timer_, see paths::ShortLives.
  bool defers_path_ ABSL_GUARDED_BY(mu_);
  // Arguments of the OnConnectWanted() that waits.
  struct {
    uint32_t epoch = 0;
    std::string fabric;
    std::string offer;
    std::string token;
  } deferred_ ABSL_GUARDED_BY(mu_);
  connection::PathBackoff backoff_ ABSL_GUARDED_BY(mu_);  // for retry_timer_
  base::LimitedLog log_ ABSL_GUARDED_BY(mu_);
  std::string path_logged_ ABSL_GUARDED_BY(mu_);

  Settled settled_ ABSL_GUARDED_BY(mu_);
  grpc_core::ConnectivityStateTracker state_ ABSL_GUARDED_BY(mu_);
  // Whether gRPC's channel knows that this connection is left.
  enum class Telling { kNot, kUnderWay, kDone };
  Telling telling_ ABSL_GUARDED_BY(mu_) = Telling::kNot;
  bool is_watched_ ABSL_GUARDED_BY(mu_) = false;  // state_, by the channel
  StreamList held_ ABSL_GUARDED_BY(mu_);  // until the channel has been told
  Acceptor acceptor_ ABSL_GUARDED_BY(mu_);
  bool acceptor_taken_back_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<uint32_t> opened_
      ABSL_GUARDED_BY(mu_);  // streams that gRPC has yet to accept
  size_t accepting_ ABSL_GUARDED_BY(mu_) =
      0;  // how many streams of opened_ are being accepted
  std::vector<grpc_closure*> consumed_
      ABSL_GUARDED_BY(mu_);  // to run once accepting_ is 0
  // How many streams have ended, but are not destroyed: gRPC keeps memory for a
  // call until it destroys its stream.
  std::atomic<int> ended_{0};
  mutable std::atomic<bool> awaits_destruction_{false};
  StreamList streams_ ABSL_GUARDED_BY(mu_);
  bool shutdown_when_written_ ABSL_GUARDED_BY(mu_) = false;
  bool wants_read_ ABSL_GUARDED_BY(mu_) = false;  // the next read may begin
  SentEntries sent_entries_ ABSL_GUARDED_BY(mu_);
  ReceivedEntries received_entries_ ABSL_GUARDED_BY(mu_);
  std::string encoded_ ABSL_GUARDED_BY(mu_);
  uint64_t next_ping_ ABSL_GUARDED_BY(mu_) = 1;
  std::unordered_map<uint64_t, grpc_closure*> pings_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<metrics::Registration> counted_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_TRANSPORT_H_
