// A session: one peer, its streams, and the paths that carry them.
//
// It begins on the lifeline, the connection on which it was negotiated. Beside
// it a fast path may be added, lost and added again; no frame is lost or
// repeated by that. When the lifeline breaks, the session is over.
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
// Thread-compatible: its owner's lock is held in every call, and events come
// within calls. Flush() sends what calls have added; call it before unlocking.

#ifndef PENSTOCK_TRANSPORT_SESSION_SESSION_H_
#define PENSTOCK_TRANSPORT_SESSION_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "transport/base/buffer_pool.h"
#include "transport/base/fifo.h"
#include "transport/fabric/fabric.h"
#include "transport/protocol/reassembler.h"
#include "transport/protocol/receive_order.h"
#include "transport/session/budget.h"
#include "transport/session/events.h"
#include "transport/session/exposures.h"
#include "transport/session/message_reader.h"
#include "transport/session/path_handshake.h"
#include "transport/session/path_negotiator.h"
#include "transport/session/send_meter.h"
#include "transport/session/sender.h"
#include "transport/session/stream_table.h"
#include "transport/session/tuning.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace session {

struct Config {
  // The side that opened the connection: opens streams, connects paths.
  bool is_client = false;
  // What this side offers besides the lifeline, best first.
  std::vector<wire::FabricOffer> offers;
  // The acceptor's secret for paths to come.
  std::string token;
  // A server's: streams that the client may have open at once.
  uint32_t max_streams = UINT32_MAX;
  // Announced messages above this are refused; negative: no limit.
  int64_t max_receive_bytes = -1;
  // Unread bytes that the peer may have under way on one stream. Two messages
  // of the largest common tensor chunk; more only delays the reader's
  // push-back.
  uint32_t stream_window = 4 * 1024 * 1024;
  // Messages may be used in the peer's memory, where a fabric can do that.
  bool load_in_place = true;
  // What the peer has not read on all streams together, above which even small
  // messages are announced: the peer then has them when it wants them, and its
  // memory is bounded however many streams it leaves unread.
  uint64_t max_eager_unread = 16 * 1024 * 1024;
  // Memory for messages that are being read or wait for the application.
  uint64_t read_budget = 64 * 1024 * 1024;
  // Of metadata, as encoded, no more than one byte beyond this is kept: enough
  // to see that it is too much.
  size_t max_metadata_bytes = SIZE_MAX - 1;
  BudgetLimits budget;
  Tuning tuning;
};

struct Counters {
  uint64_t messages_sent = 0;
  uint64_t messages_received = 0;
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  // For keepalive: whatever came over a path, and frames of streams sent.
  uint64_t inputs = 0;
  uint64_t stream_frames_sent = 0;
};

class Session : private MessageReader::Owner {
 public:
  // `events` outlives the session.
  Session(Config config, std::unique_ptr<fabric::Endpoint> lifeline,
          SessionEvents* events);
  ~Session() override;

  void Start();

  // Streams. An id may be used once, in growing order, by the client only.
  // Calls about a stream that has ended are ignored. A client's streams above
  // the server's limit wait, and what is sent on them, until others end.
  void AttachStream(uint32_t stream, StreamEvents* events);
  // Opened by the peer and not attached yet.
  bool IsWaiting(uint32_t stream);
  // No more events; messages that were received and wait are dropped. What was
  // sent and waits for the window still goes.
  void DetachStream(uint32_t stream);
  // Drops what waits for the window: the stream is being cancelled.
  void DropUnsent(uint32_t stream);
  void SendHeaders(uint32_t stream, absl::string_view metadata);
  // Copies the message, if it is short and need not wait; then the result is
  // true, and SendMessage() is not needed.
  bool SendEager(uint32_t stream, absl::string_view message, bool compressed,
                 bool last = false);
  // True: the window has taken it. False: OnSendAccepted will follow. The
  // payload stays alive until the peer has it. With `last` it is as if
  // SendHalfClose() followed.
  bool SendMessage(uint32_t stream, memory::Payload message, bool compressed,
                   bool last = false);
  void SendHalfClose(uint32_t stream);
  void SendTrailers(uint32_t stream, absl::string_view metadata);
  // An entry that metadata sent from now on has by its number.
  void SendEntry(uint32_t number, absl::string_view entry);
  // Drops what the stream has not sent, and ends it for the peer; see
  // Refusal().
  void SendReset(uint32_t stream, const absl::Status& status);
  // The application waits for the stream's next message.
  void WantMessage(uint32_t stream);
  // The application has taken the stream's oldest message.
  void Consumed(uint32_t stream);

  // A client's stream of which nothing was sent, as the server takes no more.
  bool IsBlocked(uint32_t stream);

  // Streams above `last_stream` are not served; wire::kLastStreamUnknown where
  // another GOAWAY will tell.
  void SendGoaway(uint32_t last_stream, const absl::Status& status);
  void SendPing(uint64_t cookie);

  // Paths. An attempt has a number; what comes of an earlier one is too late.
  uint32_t path_epoch() const { return handshake_.epoch(); }
  void AddFastPath(const std::string& fabric,
                   std::shared_ptr<fabric::Endpoint> path);
  void FastPathFailed(const absl::Status& cause);
  void OfferPath(const std::string& token);
  // For a client that has only the lifeline and could have more.
  bool CanRetryPath() const;
  void RetryPath();
  PathDescription DescribePath() const;

  // Delivers what waits at the fast path, a bounded amount. True if there was
  // anything.
  bool Poll();
  // All of it: what the peer sent before it went may still be there, replies
  // for one. Done by itself before a broken lifeline ends the session.
  void DrainFastPath();
  // Null, or the endpoint that Poll() is about.
  const std::shared_ptr<fabric::Endpoint>& fast_path() const { return fast_; }
  void Flush();
  // Nothing that was sent waits any more: not for a path, nor for the window,
  // nor for the peer to read it here. True too when there is no stream.
  bool drained() const {
    return sender_.idle() && exposures_.empty() && streams_.empty() &&
           (fast_ == nullptr || fast_->IsDrained());
  }

  // New streams may be given to the application; see BudgetLimits. If not, they
  // wait to be attached until the peer has taken what it was sent.
  bool accepts_streams() const { return budget_.accepts_streams(); }
  // More may be read from the lifeline. Always beside a fast path: doorbells
  // come there, without which nothing makes room on that path.
  bool reads() const { return using_fast_ || budget_.reads(); }

  // Whether the peer's hello has come.
  bool greeted() const { return state_ != State::kGreeting; }
  // True while the two sides have not agreed on what carries the session.
  bool negotiates_path() const {
    return state_ == State::kOpen &&
           handshake_.state() != PathHandshake::State::kInUse &&
           handshake_.state() != PathHandshake::State::kSettled;
  }
  bool using_fast_path() const { return using_fast_; }
  void Close(const absl::Status& cause);
  bool closed() const { return state_ == State::kClosed; }
  const Config& config() const { return config_; }
  const Counters& counters() const { return counters_; }

 private:
  enum class State { kGreeting, kOpen, kClosed };

  // Tells the endpoints' events apart.
  class PathEvents : public fabric::EndpointEvents {
   public:
    PathEvents(Session* session, bool is_lifeline)
        : session_(session), is_lifeline_(is_lifeline) {}
    void OnMessage(absl::Span<const uint8_t> message) override;
    void OnWritable() override { session_->sender_.Flush(); }
    void OnReadDone(uint64_t cookie, const absl::Status& status) override;
    void OnDoorbell() override { session_->Poll(); }
    void OnBroken(const absl::Status& cause) override;

   private:
    Session* const session_;
    const bool is_lifeline_;
  };

  // session_receive.cc
  void OnMessage(bool over_lifeline, absl::Span<const uint8_t> message);
  absl::Status OnFrame(bool over_lifeline, const wire::Frame& frame);
  absl::Status OnControl(const wire::Frame& frame);
  absl::Status OnSequenced(const wire::Frame& frame);
  absl::Status Deliver(const wire::FrameHeader& header,
                       absl::Span<const uint8_t> payload);
  absl::Status Dispatch(const wire::FrameHeader& header,
                        absl::Span<const uint8_t> payload);

  // session_inbox.cc
  absl::Status OnHeaders(uint32_t stream, absl::Span<const uint8_t> payload);
  absl::Status OnEager(const wire::FrameHeader& header,
                       absl::Span<const uint8_t> payload);
  absl::Status OnAnnounce(const wire::FrameHeader& header,
                          absl::Span<const uint8_t> payload);
  absl::Status ChargeWindow(Stream* stream, uint64_t bytes, bool is_announced);
  // What a server's streams make it hold.
  void Hold(Stream* stream, uint64_t bytes);
  void LetGo(Stream* stream, uint64_t bytes);
  absl::Status AddMetadata(uint32_t stream, protocol::Inbox::Kind kind,
                           absl::Span<const uint8_t> metadata);
  // Whether what comes for it may be delivered without waiting in its inbox.
  static bool TakesInput(const Stream& stream) {
    return stream.events != nullptr && stream.inbox.empty();
  }
  std::string Copy(absl::Span<const uint8_t> bytes);
  void DeliverInbox(uint32_t stream);
  static void DeliverItem(StreamEvents* events, protocol::Inbox::Item* item);
  static void DeliverMetadata(StreamEvents* events, protocol::Inbox::Kind kind,
                              absl::string_view metadata);

  // session_receive.cc
  void OnCredit(uint32_t stream, uint64_t credit);
  void OnPeerReset(uint32_t stream, const absl::Status& status);
  // It exists.
  void ResetStream(uint32_t stream, const absl::Status& status, bool from_peer);
  void OnMessageRead(uint32_t stream, uint64_t id,
                     absl::StatusOr<memory::Bytes> message,
                     uint64_t budgeted) override;
  void OnRegionReleased(uint64_t id) override;
  void AcknowledgeIfDue();

  // session_send.cc
  void Add(wire::FrameType type, uint32_t stream, uint32_t aux,
           absl::string_view payload, uint8_t flags = 0);
  bool MustWait(Stream* stream, uint32_t id);
  void OpenWaitingStreams();
  void Uncount(Stream* stream);
  void EndStream(uint32_t stream);
  // A frame of metadata, behind what waits.
  void AddInOrder(wire::FrameType type, uint32_t stream,
                  absl::string_view metadata);
  void SendOutgoing(uint32_t stream);
  void StartIfWanted(const Stream& stream);
  bool IsEager(size_t bytes) const;
  void ChargeUnsent(Stream* stream);
  bool MaySendMessage(const Stream& stream) const;
  // The stream goes on once there is room for what it has to send.
  void WaitForRoom(uint32_t id, Stream* stream);
  void SendCongested();
  void UseWindow(Stream* stream, size_t bytes);
  void AddEager(uint32_t id, Stream* stream, absl::string_view message,
                uint8_t flags);
  void AddMessage(uint32_t id, Stream* stream, const memory::Payload& message,
                  uint8_t flags);
  bool AddAnnounce(uint32_t id, Stream* stream, const memory::Payload& message,
                   uint8_t flags, uint64_t begun_ns);
  void OnRelease(uint64_t id);

  // session.cc
  absl::Status OnHello(absl::Span<const uint8_t> payload);
  void OnLifelineBroken(const absl::Status& cause);

  // session_paths.cc
  absl::Status OnPathFrame(const wire::Frame& frame);
  void Apply(const PathHandshake::Actions& actions);
  void AddControl(wire::FrameType type, absl::string_view payload);
  void TryNextPath();
  void DropFastPath();
  void LoseFastPath(const absl::Status& cause);
  // Null if it has ended, or only drains.
  Stream* FindStream(uint32_t stream);

  const Config config_;
  SessionEvents* const events_;
  State state_ = State::kGreeting;
  bool started_ = false;  // nothing leaves before the hello
  PathEvents lifeline_events_;
  PathEvents fast_events_;
  const std::unique_ptr<fabric::Endpoint> lifeline_;
  std::shared_ptr<fabric::Endpoint> fast_;
  // Not destroyed before Flush(): they may be what is calling. With each the
  // memory that its reads may still write to, which is to outlive it.
  struct LostPath {
    std::vector<memory::Block> blocks;
    std::shared_ptr<fabric::Endpoint> path;  // destroyed first
  };
  std::vector<LostPath> lost_paths_;
  bool using_fast_ = false;
  bool in_input_ = false;  // delivering: input that nests would be out of order
  PathHandshake handshake_;
  PathNegotiator negotiator_;
  std::string fabric_;      // of fast_
  std::string peer_token_;  // the acceptor's
  uint32_t peer_window_ = 0;

  base::BufferPool buffers_;
  Budget budget_;
  Sender sender_;
  SendMeter send_meter_;
  protocol::ReceiveOrder order_;
  protocol::Reassembler reassembler_;
  MessageReader reader_;
  uint64_t received_since_ack_ = 0;
  uint64_t last_announced_by_peer_ = 0;
  Exposures exposures_;
  StreamTable streams_;
  uint32_t last_opened_ = 0;
  uint32_t max_streams_;  // that may be open at once
  uint32_t open_streams_ = 0;
  uint64_t unread_by_peer_ = 0;  // on all streams, as their windows count
  std::deque<uint32_t> blocked_streams_;
  base::Fifo<uint32_t> congested_;  // in the order of coming
  Counters counters_;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_SESSION_H_
