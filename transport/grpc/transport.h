// The grpc_transport: gRPC's streams and operations on a Penstock session.

#ifndef PENSTOCK_TRANSPORT_GRPC_TRANSPORT_H_
#define PENSTOCK_TRANSPORT_GRPC_TRANSPORT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/core/lib/channel/channelz.h"
#include "src/core/lib/iomgr/endpoint.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "src/core/lib/transport/connectivity_state.h"
#include "src/core/lib/transport/transport.h"
#include "src/core/lib/transport/transport_impl.h"
#include "transport/base/limited_log.h"
#include "transport/base/mutex.h"
#include "transport/fabric/tcp/endpoint.h"
#include "transport/grpc/channel_limits.h"
#include "transport/grpc/endpoint_stream.h"
#include "transport/grpc/grpc_abi.h"
#include "transport/grpc/half_open.h"
#include "transport/grpc/late_release.h"
#include "transport/grpc/liveness.h"
#include "transport/grpc/metadata_table.h"
#include "transport/grpc/path_poller.h"
#include "transport/grpc/path_waker.h"
#include "transport/grpc/side_paths.h"
#include "transport/grpc/stream_list.h"
#include "transport/grpc/timer.h"
#include "transport/session/departure.h"
#include "transport/session/path_backoff.h"
#include "transport/session/session.h"
#include "transport/settings/settings.h"

namespace penstock {
// Not named after its folder: in a namespace penstock::grpc, and so in all of
// penstock, `grpc` would not be gRPC's any more.
namespace core {

class Stream;

// Owns the session and the connection it runs on. One mutex guards all; every
// closure goes to the ExecCtx, so none runs under it.
//
// References: gRPC (or the handshaker that made it) holds the first, until
// grpc_transport_destroy; each stream, the read and the write under way, and
// each attempt to connect a path hold one. The last destroys it.
class Transport final : public grpc_transport,
                        public EndpointStreamEvents,
                        public PathPoller::Owner,
                        public session::SessionEvents {
 public:
  // Told once, from an ExecCtx and without locks: OK when the session carries
  // calls as its settings want, or why it does not and has been closed.
  using Settled = std::function<void(const absl::Status&)>;

  struct Config {
    bool is_client = false;
    Settings settings;
    ChannelLimits limits;
    // The security handshake's result: PromisesPrivacy().
    bool is_private = false;
    // A server's; the transport gives it back once a path is chosen.
    HalfOpen::Place half_open;
    // What channelz shows; may be null.
    grpc_core::RefCountedPtr<grpc_core::channelz::SocketNode::Security>
        security;
  };

  // Takes the endpoint and the bytes that came behind the negotiation.
  // `settled` may be empty.
  static Transport* Create(const Config& config, grpc_endpoint* endpoint,
                           grpc_core::SliceBuffer received, Settled settled);
  static Transport* From(grpc_transport* transport) {
    return static_cast<Transport*>(transport);
  }

  // Starts reading, unless it has been closed by now. Once.
  void Start();
  void Close(const absl::Status& why);
  session::PathDescription DescribePath();
  session::Counters counters();
  // Names the connection in channelz and in the registry, and counts for them.
  const grpc_core::RefCountedPtr<grpc_core::channelz::SocketNode>& socket_node()
      const {
    return socket_node_;
  }

  // For streams, under the lock.
  session::Session* session() {
    mu_.AssertHeld();
    return session_.get();
  }
  bool is_client() const { return config_.is_client; }
  const std::string& peer() const { return peer_; }
  const ChannelLimits& limits() const { return config_.limits; }
  // Valid until the next call. What the peer has not seen yet is told first.
  absl::string_view Encode(const grpc_metadata_batch& metadata);
  const ReceivedEntries& received_entries() const {
    mu_.AssertHeld();
    return received_entries_;
  }
  bool AcceptsStreams() const;
  uint32_t NextStreamId() {
    mu_.AssertHeld();
    return next_stream_++;
  }
  void AddStream(Stream* stream);
  void RemoveStream(Stream* stream);
  // gRPC has destroyed a stream. Not under the lock.
  void OnDestroyed();
  // The server refused a client's stream.
  void OnRefused();

  // For pollers and side paths.
  bool PollPath() override;
  void Ref() override { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() override;
  // For one who found it in a registry: false if it is being destroyed.
  bool RefUnlessDead();

 private:
  // Holds the lock, and ends with FinishAndUnlock().
  class ABSL_SCOPED_LOCKABLE Section {
   public:
    explicit Section(Transport* transport)
        ABSL_EXCLUSIVE_LOCK_FUNCTION(transport->mu_);
    ~Section() ABSL_UNLOCK_FUNCTION() { transport_->FinishAndUnlock(); }

   private:
    LateRelease late_release_;  // goes last
    Transport* const transport_;
  };
  // What the vtable points to: transport_vtable.cc.
  struct Operations;

  Transport(const Config& config, grpc_endpoint* endpoint,
            grpc_core::SliceBuffer received, Settled settled);
  ~Transport() override;

  static const grpc_transport_vtable* Vtable();
  // Draws the conclusions of what was done under the lock.
  void FinishAndUnlock() ABSL_UNLOCK_FUNCTION(mu_);
  // A share that may be dropped on any thread, even outside an ExecCtx.
  std::shared_ptr<Transport> Share();
  // What gRPC accepts streams with. As gRPC frees what `argument` leads to once
  // it has taken the acceptor back and on_consumed has run, that closure waits
  // until no thread is in `function` any more.
  struct Acceptor {
    void (*function)(void*, grpc_transport*, const void*) = nullptr;
    void* argument = nullptr;
  };
  void SetAcceptor(const Acceptor& acceptor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives gRPC the streams that the peer has opened.
  void UnlockAndAccept() ABSL_UNLOCK_FUNCTION(mu_);
  void AcceptStream(const Acceptor& acceptor, uint32_t id);
  bool MayAccept() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasTooManyEnded() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RefuseStream(uint32_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RefuseOpened() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Runs `closure`, a transport operation's on_consumed, perhaps later.
  void Consume(grpc_closure* closure) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LogPath(const session::PathDescription& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Settle(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckPolicy(const session::PathDescription& path) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
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
  void Leave(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CloseWhenDrained() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void SyncPathPoller() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SchedulePolling() override;
  void PollUntilEmpty();
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
  void OnLingerTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnRetryTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RetryPathLater() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What the fabrics call, on threads of theirs.
  SidePaths::Done OnSidePath() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddSidePath(uint32_t epoch, const std::string& fabric,
                   absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path);
  void DeliverReadBuffer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnConnectionClosed(const grpc_error_handle& error)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

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

  Config config_;
  const std::string peer_;
  const grpc_core::RefCountedPtr<grpc_core::channelz::SocketNode> socket_node_;
  std::atomic<int> refs_{1};

  // Not gRPC's, which looks for deadlocks with each use.
  base::Mutex mu_;
  EndpointStream stream_;
  SidePaths side_paths_;
  fabric::tcp::Endpoint* lifeline_;  // the session's
  std::unique_ptr<session::Session> session_ ABSL_GUARDED_BY(mu_);
  session::Departure departure_ ABSL_GUARDED_BY(mu_);
  PathPoller poller_;
  std::shared_ptr<fabric::Endpoint> woken_path_
      ABSL_GUARDED_BY(mu_);  // what wakers_ are about
  std::vector<std::shared_ptr<PathWaker>> wakers_ ABSL_GUARDED_BY(mu_);
  Liveness liveness_ ABSL_GUARDED_BY(mu_);
  Timer hello_timer_ ABSL_GUARDED_BY(mu_);
  Timer settle_timer_ ABSL_GUARDED_BY(mu_);
  uint32_t settle_epoch_ ABSL_GUARDED_BY(mu_) =
      0;  // of the path that settle_timer_ is about
  Timer keepalive_timer_ ABSL_GUARDED_BY(mu_);
  Timer retry_timer_ ABSL_GUARDED_BY(mu_);
  Timer linger_timer_ ABSL_GUARDED_BY(mu_);
  Timer drain_timer_ ABSL_GUARDED_BY(mu_);
  session::PathBackoff backoff_ ABSL_GUARDED_BY(mu_);  // for retry_timer_
  base::LimitedLog log_ ABSL_GUARDED_BY(mu_);
  std::string path_logged_ ABSL_GUARDED_BY(mu_);

  Settled settled_ ABSL_GUARDED_BY(mu_);
  grpc_core::ConnectivityStateTracker state_ ABSL_GUARDED_BY(mu_);
  Acceptor acceptor_ ABSL_GUARDED_BY(mu_);
  bool acceptor_taken_back_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<uint32_t> opened_
      ABSL_GUARDED_BY(mu_);  // to be accepted, without the lock
  size_t accepting_ ABSL_GUARDED_BY(mu_) =
      0;  // taken from opened_, not accepted yet
  std::vector<grpc_closure*> consumed_
      ABSL_GUARDED_BY(mu_);  // to run once accepting_ is 0
  // Streams that have ended, and that gRPC has not destroyed: what it keeps for
  // a call outlives the stream.
  std::atomic<int> ended_{0};
  mutable std::atomic<bool> awaits_destruction_{false};
  StreamList streams_ ABSL_GUARDED_BY(mu_);
  uint32_t next_stream_ ABSL_GUARDED_BY(mu_) = 1;
  bool shutdown_when_written_ ABSL_GUARDED_BY(mu_) = false;
  bool wants_read_ ABSL_GUARDED_BY(mu_) = false;  // none is under way
  SentEntries sent_entries_ ABSL_GUARDED_BY(mu_);
  ReceivedEntries received_entries_ ABSL_GUARDED_BY(mu_);
  std::string encoded_ ABSL_GUARDED_BY(mu_);
  uint64_t next_ping_ ABSL_GUARDED_BY(mu_) = 1;
  std::unordered_map<uint64_t, grpc_closure*> pings_ ABSL_GUARDED_BY(mu_);
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_TRANSPORT_H_
