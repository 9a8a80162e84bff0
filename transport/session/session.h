// A session with one peer, its streams, and the paths that carry them.
//
// The session begins on the lifeline, the connection on which it was
// negotiated. A fast path may be added, lost, and added again, without losing
// or repeating a frame. The session ends when the lifeline breaks.
//
// Session owns the lifeline and its parts: Streams has the streams, FastPath
// the fast path, and OrderedInput the order of the peer's frames.
//
//   state         event                    action                   next
//   kGreeting     Start                    send hello               kGreeting
//   kGreeting     peer's hello             connect a path, or       kOpen
//                                          report the lifeline
//   any           lifeline broken, bad     reset the streams,       kClosed
//                 frame, Close             report
//
// In kOpen, the FastPath decides which path is used.
//
// Thread-compatible: hold the owner's lock in every call. Events arrive within
// calls. Call Flush() before unlocking, to send the frames that the calls have
// added.

#ifndef PENSTOCK_TRANSPORT_SESSION_SESSION_H_
#define PENSTOCK_TRANSPORT_SESSION_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "transport/base/buffer_pool.h"
#include "transport/fabric/fabric.h"
#include "transport/metrics/connection_info.h"
#include "transport/metrics/labels.h"
#include "transport/metrics/snapshot.h"
#include "transport/session/budget.h"
#include "transport/session/config.h"
#include "transport/session/counters.h"
#include "transport/session/events.h"
#include "transport/session/fast_path.h"
#include "transport/session/frame_writer.h"
#include "transport/session/ordered_input.h"
#include "transport/session/pongs.h"
#include "transport/session/recorder.h"
#include "transport/session/send_stall.h"
#include "transport/session/sender.h"
#include "transport/session/streams.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace session {

class Session {
 public:
  // Refers to `events` and `path_events`, which must outlive the session.
  Session(Config config, std::unique_ptr<fabric::Endpoint> lifeline,
          SessionEvents* events, PathEvents* path_events);
  ~Session();

  void Start();

  // Delivers the stream's events to `events` until the last event or
  // Streams::Detach(). On a client, opens a stream with an id of the caller's
  // choice. Ids must increase, and the stream's first frame tells the server.
  // On a server, the client has opened the stream; the data received so far is
  // delivered during this call.
  void AttachStream(uint32_t stream, StreamEvents* events);
  Streams& streams() { return streams_; }
  StreamInput& input() { return streams_.input(); }
  StreamOutput& output() { return streams_.output(); }
  // Sends an entry of the metadata table. Later metadata refers to the entry by
  // `number`.
  void SendEntry(uint32_t number, absl::string_view entry);
  // Tells the peer that streams above `last_stream` are not served. With
  // wire::kLastStreamUnknown, a later GOAWAY names the last stream.
  void SendGoaway(uint32_t last_stream, const absl::Status& status);
  // Sends a ping, and a few bytes over the lifeline. Proxies see only the
  // lifeline; the bytes show them that the connection is in use.
  void SendPing(uint64_t cookie);
  Pongs& pongs() { return pongs_; }

  FastPath& path() { return path_; }
  const FastPath& path() const { return path_; }

  // Delivers a bounded amount of the fast path's input. Returns true if there
  // was any.
  bool Poll();
  // Delivers all of the fast path's input, which may hold replies that the peer
  // sent before it ended. Called when the lifeline breaks, before the session
  // ends.
  void DrainFastPath();
  // Sends the frames that the calls have added, as far as the paths have room.
  void Flush();
  // Returns true if frames were deferred; see Config::defers_answers.
  bool has_deferred() const { return writer_.has_deferred(); }
  // Adds the deferred frames, which the next Flush() sends.
  void SendDeferred() { writer_.SendDeferred(); }
  // Returns true if closing loses no data: no stream is left, and the peer has
  // received everything.
  bool drained() const {
    return sender_.idle() && streams_.output().all_released() &&
           streams_.empty() &&
           (path_.endpoint() == nullptr || path_.endpoint()->IsDrained());
  }

  // Returns true if new streams may be attached; see BudgetLimits. While false,
  // new streams wait until the peer has read more of the sent data.
  bool accepts_streams() const { return budget_.accepts_streams(); }
  // Returns true if the owner may read more from the lifeline. Always true
  // while a fast path is in use, because the lifeline then delivers doorbells.
  // Without doorbells, this side would not notice that the path has room again.
  bool reads() const { return path_.in_use() || budget_.reads(); }

  // Returns true once the peer's hello has arrived.
  bool greeted() const { return state_ != State::kGreeting; }
  // Ends the session: resets its streams with UNAVAILABLE, and reports `cause`.
  void Close(const absl::Status& cause);
  // Closes the session in the child of a fork. Sends nothing and never releases
  // the paths, because they belong to the parent.
  void Abandon(const absl::Status& cause);
  bool closed() const { return state_ == State::kClosed; }
  const Config& config() const { return config_; }
  const Counters& counters() const { return counters_; }
  // Adds the session's counters and current state.
  void Collect(metrics::Snapshot* snapshot) const;
  // Describes the session, without its peer. Returns false if the session is
  // over.
  bool Describe(metrics::ConnectionInfo* info) const;

 private:
  enum class State { kGreeting, kOpen, kClosed };

  // Runs the steps that Close() and Abandon() share.
  void EndStreams(const absl::Status& cause);

  // Distinguishes the events of the two endpoints.
  class EndpointInput : public fabric::EndpointEvents {
   public:
    EndpointInput(Session* session, bool is_lifeline)
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

  Parts parts();

  void OnPacket(bool over_lifeline, absl::Span<const uint8_t> packet);
  absl::Status OnFrame(bool over_lifeline, const wire::Frame& frame);
  absl::Status OnHello(absl::Span<const uint8_t> payload);
  void OnLifelineBroken(const absl::Status& cause);
  void SendAdded();
  void CollectState(metrics::Snapshot* snapshot) const;

  const Config config_;
  SessionEvents* const events_;
  State state_ = State::kGreeting;
  bool started_ = false;  // nothing leaves before the hello
  EndpointInput lifeline_events_;
  EndpointInput fast_events_;
  const std::unique_ptr<fabric::Endpoint> lifeline_;
  FastPath path_;
  bool in_input_ = false;  // delivering; nested input would be misordered
  base::BufferPool buffers_;
  Budget budget_;
  Sender sender_;
  Counters counters_;
  const Recorder recorder_;
  SendStall stall_;
  OrderedInput ordered_;
  FrameWriter writer_;
  Pongs pongs_;
  Streams streams_;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_SESSION_H_
