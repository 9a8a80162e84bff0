// A session: one peer, its streams, and the paths that carry them.
//
// A session begins on the lifeline, the connection on which it was negotiated.
// A fast path may be added, lost, and added again, without a frame being lost
// or repeated. When the lifeline breaks, the session is over.
//
// Session has the paths and dispatches what comes; Streams has the streams.
//
//   state         event                    action                   next
//   kGreeting     Start                    send hello               kGreeting
//   kGreeting     peer's hello             connect a path, or       kOpen
//                                          report the lifeline
//   any           lifeline broken, bad     reset the streams,       kClosed
//                 frame, Close             report
//
// While it is kOpen, a PathHandshake says which path is used.
//
// Thread-compatible: hold the owner's lock in every call. Events come within
// calls. Call Flush() before unlocking: it sends what calls have added.

#ifndef PENSTOCK_TRANSPORT_SESSION_SESSION_H_
#define PENSTOCK_TRANSPORT_SESSION_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "transport/base/buffer_pool.h"
#include "transport/fabric/fabric.h"
#include "transport/memory/destinations.h"
#include "transport/metrics/connection_info.h"
#include "transport/metrics/labels.h"
#include "transport/metrics/snapshot.h"
#include "transport/protocol/reassembler.h"
#include "transport/protocol/receive_order.h"
#include "transport/session/budget.h"
#include "transport/session/config.h"
#include "transport/session/counters.h"
#include "transport/session/events.h"
#include "transport/session/frame_writer.h"
#include "transport/session/path_handshake.h"
#include "transport/session/path_negotiator.h"
#include "transport/session/recorder.h"
#include "transport/session/sender.h"
#include "transport/session/streams.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace session {

class Session {
 public:
  // `events` outlives the session.
  Session(Config config, std::unique_ptr<fabric::Endpoint> lifeline,
          SessionEvents* events);
  ~Session();

  void Start();

  // Streams. The client chooses their ids, each once, in growing order. Calls
  // about a stream that has ended are ignored. Blocks streams beyond the
  // server's limit until earlier streams end.

  // Delivers the stream's events to `events` until the last of them, or
  // DetachStream(). A client opens the stream by sending on it; a server's was
  // opened by the peer, and what has come meanwhile is delivered now.
  void AttachStream(uint32_t stream, StreamEvents* events);
  // Returns true if the peer has opened the stream and nobody has attached it.
  bool IsUnattached(uint32_t stream) { return streams_.IsUnattached(stream); }
  // Ends the stream's events and drops the stream's unread input. Still sends
  // the queued output.
  void DetachStream(uint32_t stream) { streams_.Detach(stream); }
  // Drops what is queued to be sent, for a stream that is being cancelled.
  void DropUnsent(uint32_t stream) { output().DropUnsent(stream); }
  void SendHeaders(uint32_t stream, absl::string_view metadata) {
    output().SendHeaders(stream, metadata);
  }
  // Sends a copy of the message if it is short and may leave at once. Returns
  // false if not: then use SendMessage().
  bool SendEager(uint32_t stream, absl::string_view message, bool compressed,
                 bool last = false) {
    return output().SendEager(stream, message, compressed, last);
  }
  // Sends the message. Returns false if it is queued: OnSendAccepted() follows
  // once the stream's window has room for it. Keeps the payload alive until the
  // peer has it. With `last`, half-closes the stream behind it.
  bool SendMessage(uint32_t stream, memory::Payload message, bool compressed,
                   bool last = false) {
    return output().SendMessage(stream, std::move(message), compressed, last);
  }
  void SendHalfClose(uint32_t stream) { output().SendHalfClose(stream); }
  void SendTrailers(uint32_t stream, absl::string_view metadata) {
    output().SendTrailers(stream, metadata);
  }
  // Tells the peer the entry that metadata, from now on, names by its number.
  void SendEntry(uint32_t number, absl::string_view entry);
  // Ends the stream for the peer, and drops what is queued to be sent. See
  // Refusal() for calls that may be repeated.
  void SendReset(uint32_t stream, const absl::Status& status) {
    output().SendReset(stream, status);
  }
  // Reads the stream's next message, if it is announced, into `destinations`,
  // as far as parts of it have their sizes and its path can read there. A piece
  // of the message that is one of them lies there, and keeps them taken. Call
  // this before the peer can have sent the message.
  void PostDestinations(uint32_t stream,
                        std::shared_ptr<memory::Destinations> destinations) {
    streams_.input().PostDestinations(stream, std::move(destinations));
  }
  // Reads the stream's next message even where the budget would have it wait:
  // the application asks for it.
  void WantMessage(uint32_t stream) { streams_.input().WantMessage(stream); }
  // Lets the peer send more: the application has taken the oldest message.
  void Consumed(uint32_t stream) { streams_.input().Consumed(stream); }

  // Returns true if nothing of a client's stream was sent, because the server
  // takes no more streams at present.
  bool IsBlocked(uint32_t stream) { return streams_.IsBlocked(stream); }

  // Tells the peer that streams above `last_stream` are not served.
  // wire::kLastStreamUnknown: another GOAWAY will say which was the last.
  void SendGoaway(uint32_t last_stream, const absl::Status& status);
  // Rings the lifeline as well: a ping also tells those who watch the
  // connection from outside that it is in use.
  void SendPing(uint64_t cookie);
  // Has some bytes pass over the lifeline, with the next Flush(), if a fast
  // path carries the session. Does nothing else to the peer.
  void RingLifeline() { rings_lifeline_ = using_fast_; }
  // Keeps back the answer to the next ping, until ReleasePong(). Answers later
  // pings at once.
  void HoldPong() { holds_pong_ = true; }
  void ReleasePong();

  // Paths. Each attempt at one has a number, its epoch. Drop what comes of an
  // earlier attempt than path_epoch().
  uint32_t path_epoch() const { return handshake_.epoch(); }
  // Uses `path` once the peer has it too. Ignored where there is one already.
  void AddFastPath(const std::string& fabric,
                   std::shared_ptr<fabric::Endpoint> path);
  // Goes on to the next fabric (a client's), or waits for the peer on the
  // others (a server's). The attempt is over when all have failed.
  void FastPathFailed(const std::string& fabric, const absl::Status& cause);
  // Tells the client by which token to present itself; see OnListenWanted().
  void OfferPath(const std::string& token);
  // Returns true if a client has only the lifeline and could have more.
  bool CanRetryPath() const;
  // Begins another attempt, where CanRetryPath().
  void RetryPath();
  // Goes on over the lifeline alone, as if the path had broken.
  void GiveUpFastPath(const absl::Status& why) { LoseFastPath(why); }
  PathDescription DescribePath() const;

  // Delivers a bounded amount of what has come over the fast path. Returns
  // whether there was anything.
  bool Poll();
  // Delivers all of it: replies that the peer sent before it went may still be
  // there. A broken lifeline does so before it ends the session.
  void DrainFastPath();
  // Returns the path that Poll() polls. Null if there is only the lifeline.
  const std::shared_ptr<fabric::Endpoint>& fast_path() const { return fast_; }
  // Sends what calls have added, as far as the paths have room.
  void Flush();
  // Returns true if the session may close without loss: no stream is left, and
  // the peer has all that was sent.
  bool drained() const {
    return sender_.idle() && streams_.output().all_released() &&
           streams_.empty() && (fast_ == nullptr || fast_->IsDrained());
  }

  // Returns true if new streams may be attached; see BudgetLimits. If not, they
  // stay unattached until the peer has taken its answers.
  bool accepts_streams() const { return budget_.accepts_streams(); }
  // Returns true if more may be read from the lifeline. Always true while a
  // fast path is used: its doorbells come over the lifeline, and without them
  // nothing makes room on that path.
  bool reads() const { return using_fast_ || budget_.reads(); }

  // Returns true if the peer's hello has come.
  bool greeted() const { return state_ != State::kGreeting; }
  // Returns true until the two sides have agreed on a path for the session.
  bool negotiates_path() const {
    return state_ == State::kOpen &&
           handshake_.state() != PathHandshake::State::kInUse &&
           handshake_.state() != PathHandshake::State::kSettled;
  }
  bool using_fast_path() const { return using_fast_; }
  // Returns true if messages in device memory would be sent from there now.
  bool takes_device_memory() const {
    return using_fast_ && fast_->TakesDeviceMemory();
  }
  // Ends the session: resets its streams with UNAVAILABLE, and reports `cause`.
  void Close(const absl::Status& cause);
  // The same in the child of a fork, where the paths are the parent's: sends
  // nothing, and leaves them as they are, for good.
  void Abandon(const absl::Status& cause);
  bool closed() const { return state_ == State::kClosed; }
  const Config& config() const { return config_; }
  const Counters& counters() const { return counters_; }
  // Adds what the session has counted, and how it is now.
  void Collect(metrics::Snapshot* snapshot) const;
  // Describes it, but for the peer. False: it is over.
  bool Describe(metrics::ConnectionInfo* info) const;

 private:
  enum class State { kGreeting, kOpen, kClosed };

  // The common part of all ends of a session.
  void EndStreams(const absl::Status& cause);

  // Tells the endpoints' events apart.
  class PathEvents : public fabric::EndpointEvents {
   public:
    PathEvents(Session* session, bool is_lifeline)
        : session_(session), is_lifeline_(is_lifeline) {}
    void OnPacket(absl::Span<const uint8_t> packet) override;
    void OnWritable() override { session_->sender_.Flush(); }
    void OnReadDone(uint64_t cookie, const absl::Status& status) override;
    void OnDoorbell() override { session_->Poll(); }
    void OnBroken(const absl::Status& cause) override;

   private:
    Session* const session_;
    const bool is_lifeline_;
  };

  StreamOutput& output() { return streams_.output(); }

  // session_receive.cc
  void OnPacket(bool over_lifeline, absl::Span<const uint8_t> packet);
  absl::Status OnFrame(bool over_lifeline, const wire::Frame& frame);
  absl::Status OnControl(const wire::Frame& frame);
  absl::Status OnSequenced(const wire::Frame& frame);
  absl::Status Deliver(const wire::FrameHeader& header,
                       absl::Span<const uint8_t> payload);
  absl::Status Dispatch(const wire::FrameHeader& header,
                        absl::Span<const uint8_t> payload);
  void AcknowledgeIfDue();

  // session.cc
  absl::Status OnHello(absl::Span<const uint8_t> payload);
  void OnLifelineBroken(const absl::Status& cause);
  void OnPing(uint64_t cookie);
  void SendPong(uint64_t cookie);
  void SendAdded();
  void ObserveStall();

  // session_metrics.cc
  metrics::Role role() const {
    return config_.is_client ? metrics::Role::kClient : metrics::Role::kServer;
  }
  void CollectTraffic(metrics::Snapshot* snapshot) const;
  void CollectState(metrics::Snapshot* snapshot) const;
  void DescribeFabric(int fabric, metrics::ConnectionInfo* info) const;

  // session_paths.cc
  absl::Status OnPathFrame(const wire::Frame& frame);
  void Apply(const PathHandshake::Actions& actions);
  void AddControl(wire::FrameType type, absl::string_view payload);
  void TryNextPath();
  void DropFastPath();
  void CountLoss();
  void ReportPath();
  void LoseFastPath(const absl::Status& cause);

  const Config config_;
  SessionEvents* const events_;
  State state_ = State::kGreeting;
  bool started_ = false;  // nothing leaves before the hello
  PathEvents lifeline_events_;
  PathEvents fast_events_;
  const std::unique_ptr<fabric::Endpoint> lifeline_;
  std::shared_ptr<fabric::Endpoint> fast_;
  // Owns the path of fast_, and after the path's loss the memory that its reads
  // may still write to. Others have shares, too, so the path may outlive the
  // session's use.
  struct PathAndMemory {
    MessageReader::Filled filled;
    std::shared_ptr<fabric::Endpoint> path;  // destroyed first
  };
  std::shared_ptr<PathAndMemory> path_and_memory_;
  // Not destroyed before Flush(): they may be what is calling.
  std::vector<std::shared_ptr<fabric::Endpoint>> lost_paths_;
  bool using_fast_ = false;
  bool rings_lifeline_ = false;  // with the next Flush()
  bool in_input_ = false;  // delivering: input that nests would be out of order
  PathHandshake handshake_;
  PathNegotiator negotiator_;
  std::string fabric_;  // of fast_
  metrics::Fabric fast_fabric_ = metrics::Fabric::kOther;
  // A path that was in use has gone. Counts as a loss if the session goes on.
  bool loss_is_uncounted_ = false;
  bool has_lost_path_ = false;  // and not regained it
  std::string peer_token_;      // the acceptor's

  base::BufferPool buffers_;
  Budget budget_;
  Sender sender_;
  protocol::ReceiveOrder order_;
  protocol::Reassembler reassembler_;
  uint64_t received_since_ack_ = 0;
  bool holds_pong_ = false;
  absl::optional<uint64_t> held_pong_;  // the ping that waits for its answer
  Counters counters_;
  const Recorder recorder_;
  // Since when there was no room for what was to be sent, and where; 0: there
  // is room.
  uint64_t stalled_ns_ = 0;
  metrics::Fabric stalled_ = metrics::Fabric::kTcp;
  FrameWriter writer_;
  Streams streams_;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_SESSION_H_
