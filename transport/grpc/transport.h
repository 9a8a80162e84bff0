// The grpc_transport: gRPC's streams and operations on a Penstock session.

#ifndef PENSTOCK_TRANSPORT_GRPC_TRANSPORT_H_
#define PENSTOCK_TRANSPORT_GRPC_TRANSPORT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "src/core/lib/channel/channelz.h"
#include "src/core/lib/iomgr/endpoint.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "src/core/lib/transport/connectivity_state.h"
#include "src/core/lib/transport/transport.h"
#include "src/core/lib/transport/transport_impl.h"
#include "transport/base/limited_log.h"
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
#include "transport/session/session.h"
#include "transport/settings.h"

namespace penstock {
namespace core {

class Stream;

// Owns the session and the connection it runs on. One mutex guards all; every
// closure goes to the ExecCtx, so none runs under it.
//
// A connection that goes away (GOAWAY), as gRPC's HTTP/2 does it:
//
//   state     event                         action                    next
//   kOpen     server: op, graceful          send GOAWAY without last  kDraining
//                                           stream, ping
//   kDraining pong, or 20 s                 send GOAWAY, last stream  kGone
//   kOpen or  server: op, not graceful, or  send GOAWAY, last stream  kGone
//   kDraining disconnect, too many pings
//   any       client: GOAWAY or refusal     end what was not sent or  kGone
//             received, or op               not served
//   kGone     no stream is left             close the session         kGone
//
// A server serves what is opened while it is kDraining, when the client could
// not know yet, and nothing later. A client in kGone opens nothing.
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
  session::Session* session() { return session_.get(); }
  bool is_client() const { return config_.is_client; }
  const std::string& peer() const { return peer_; }
  const ChannelLimits& limits() const { return config_.limits; }
  // Valid until the next call. What the peer has not seen yet is told first.
  absl::string_view Encode(const grpc_metadata_batch& metadata);
  const ReceivedEntries& received_entries() const { return received_entries_; }
  bool AcceptsStreams() const;
  uint32_t NextStreamId() { return next_stream_++; }
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
  // Holds the lock, and on the way out sends what was added and does what must
  // not be done under the lock.
  class Section {
   public:
    explicit Section(Transport* transport);
    ~Section();

   private:
    LateRelease late_release_;  // goes last
    Transport* const transport_;
  };
  // What the vtable points to: transport_vtable.cc.
  struct Operations;
  enum class Departure { kOpen, kDraining, kGone };

  Transport(const Config& config, grpc_endpoint* endpoint,
            grpc_core::SliceBuffer received, Settled settled);
  ~Transport() override;

  static const grpc_transport_vtable* Vtable();
  // A share that may be dropped on any thread, even outside an ExecCtx.
  std::shared_ptr<Transport> Share();
  // What gRPC accepts streams with. As gRPC frees what `argument` leads to once
  // it has taken the acceptor back and on_consumed has run, that closure waits
  // until no thread is in `function` any more.
  struct Acceptor {
    void (*function)(void*, grpc_transport*, const void*) = nullptr;
    void* argument = nullptr;
  };
  void SetAcceptor(const Acceptor& acceptor);
  // Gives gRPC the streams that the peer has opened.
  void UnlockAndAccept();
  void AcceptStream(const Acceptor& acceptor, uint32_t id);
  bool MayAccept() const;
  bool HasTooManyEnded() const;
  void RefuseStream(uint32_t id);
  void RefuseOpened();
  // Runs `closure`, a transport operation's on_consumed, perhaps later.
  void Consume(grpc_closure* closure);
  void LogPath(const session::PathDescription& path);
  void Settle(const absl::Status& status);
  absl::Status CheckPolicy(const session::PathDescription& path) const;
  void ShutdownWhenWritten();

  // transport_goaway.cc
  void BeginGoaway(const grpc_error_handle& error);
  void SendLastGoaway(const absl::Status& why);
  void Disconnect(const grpc_error_handle& error);
  void OnGoawayTimer();
  void SlowDown(absl::Status* state);
  void CloseUnseenStreams(uint32_t last_stream);
  void Leave(const absl::Status& why);
  void CloseWhenDrained();

  void SyncPathPoller();
  void SchedulePolling() override;
  void PollUntilEmpty();
  void OnPathWakeup();
  void StartTimer(Timer* timer, grpc_core::Duration delay,
                  void (Transport::*expired)());
  void OnHelloTimer();
  void SyncSettleTimer();
  void OnSettleTimer();
  void ReadOn();
  void OnKeepaliveTimer();
  void StartKeepaliveTimer();
  void OnLingerTimer();
  void OnRetryTimer();
  void RetryPathLater();
  // What the fabrics call, on threads of theirs.
  SidePaths::Done OnSidePath();
  void AddSidePath(uint32_t epoch, const std::string& fabric,
                   absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path);
  void DeliverReadBuffer();
  void OnConnectionClosed(const grpc_error_handle& error);

  void OnRead(grpc_error_handle error) override;
  void OnWritten(grpc_error_handle error) override;

  void OnStreamOpened(uint32_t stream) override;
  void OnGoaway(uint32_t last_stream, const absl::Status& status) override;
  void OnPing() override;
  void OnPong(uint64_t cookie) override;
  absl::Status OnEntry(uint32_t number, absl::string_view entry) override;
  void OnConnectWanted(const std::string& fabric, const std::string& offer,
                       const std::string& token) override;
  void OnListenWanted() override;
  void OnPathChosen(const session::PathDescription& path) override;
  void OnClosed(const absl::Status& cause) override;

  Config config_;
  const std::string peer_;
  const grpc_core::RefCountedPtr<grpc_core::channelz::SocketNode> socket_node_;
  std::atomic<int> refs_{1};

  // Not gRPC's, which looks for deadlocks with each use.
  std::mutex mu_;
  EndpointStream stream_;
  SidePaths side_paths_;
  fabric::tcp::Endpoint* lifeline_;  // the session's
  std::unique_ptr<session::Session> session_;
  PathPoller poller_;
  std::shared_ptr<fabric::Endpoint> woken_path_;  // what wakers_ are about
  std::vector<std::shared_ptr<PathWaker>> wakers_;
  Liveness liveness_;
  Timer hello_timer_;
  Timer settle_timer_;
  uint32_t settle_epoch_ = 0;  // of the path that settle_timer_ is about
  Timer keepalive_timer_;
  Timer retry_timer_;
  Timer linger_timer_;
  Timer goaway_timer_;
  grpc_core::Duration next_retry_;
  // When the best path came into use, if it is.
  absl::optional<grpc_core::Timestamp> best_path_since_;
  base::LimitedLog log_;
  std::string path_logged_;

  Settled settled_;
  grpc_core::ConnectivityStateTracker state_;
  Acceptor acceptor_;
  bool acceptor_taken_back_ = false;
  std::vector<uint32_t> opened_;         // to be accepted, without the lock
  size_t accepting_ = 0;                 // taken from opened_, not accepted yet
  std::vector<grpc_closure*> consumed_;  // to run once accepting_ is 0
  // Streams that have ended, and that gRPC has not destroyed: what it keeps for
  // a call outlives the stream.
  std::atomic<int> ended_{0};
  mutable std::atomic<bool> awaits_destruction_{false};
  StreamList streams_;
  uint32_t next_stream_ = 1;
  uint32_t last_opened_ = 0;  // by the peer
  Departure departure_ = Departure::kOpen;
  absl::Status departure_reason_;  // a server's, while it is kDraining
  uint32_t goaway_last_;           // that the peer named
  std::string goaway_reason_;      // the peer's
  bool shutdown_when_written_ = false;
  bool wants_read_ = false;  // none is under way
  SentEntries sent_entries_;
  ReceivedEntries received_entries_;
  std::string encoded_;
  uint64_t next_ping_ = 1;
  std::unordered_map<uint64_t, grpc_closure*> pings_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_TRANSPORT_H_
