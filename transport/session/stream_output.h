// Turns a session's send calls into frames.

#ifndef PENSTOCK_TRANSPORT_SESSION_STREAM_OUTPUT_H_
#define PENSTOCK_TRANSPORT_SESSION_STREAM_OUTPUT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "transport/base/fifo.h"
#include "transport/fabric/fabric.h"
#include "transport/memory/bytes.h"
#include "transport/session/admission.h"
#include "transport/session/budget.h"
#include "transport/session/config.h"
#include "transport/session/counters.h"
#include "transport/session/exposures.h"
#include "transport/session/frame_writer.h"
#include "transport/session/parts.h"
#include "transport/session/send_meter.h"
#include "transport/session/sender.h"
#include "transport/session/stream_table.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {

// The sending side of a session's streams. Sends a stream's frames in the order
// of the calls. A frame that may not be sent yet is queued in its stream,
// together with all later frames of the stream. The stream is then in one of
// these states:
//
//   blocked    until the server takes another stream
//   unread     for the peer to read, and release, the stream's messages
//   congested  for the session to send what other streams have added
//
// A message is sent eagerly, in a frame, or is announced and stays exposed
// until the peer releases it. Not thread-safe.
class StreamOutput {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // Reports that a draining stream has sent all its data.
    virtual void EndStream(uint32_t stream) = 0;
    // Reports that a message cannot be exposed, or memory for it is missing.
    // The owner then ends the stream on both sides.
    virtual void FailStream(uint32_t stream, const absl::Status& status) = 0;
  };

  // Refers to the arguments and to the objects in `parts`. All must outlive
  // this object.
  StreamOutput(const Parts& parts, StreamTable* streams, Admission* admission,
               Owner* owner);

  // Sets the peer's limit of unread bytes per stream, from its hello.
  void set_peer_window(uint64_t bytes) { peer_window_ = bytes; }
  // Switches to `path`, which announcements name by `epoch`.
  void UseFastPath(fabric::Endpoint* path, uint32_t epoch);
  void LoseFastPath();
  // Forgets all exposed messages. Call when the session is over.
  void Stop() { exposures_.Clear(); }

  // The functions below are for users of the session. The functions ignore a
  // stream that has ended. A client's streams beyond the server's limit are
  // blocked until earlier ones end.
  void SendHeaders(uint32_t id, absl::string_view metadata) {
    AddInOrder(wire::FrameType::kHeaders, id, metadata);
  }
  // Sends a copy of the message if the message is short and may be sent now.
  // Otherwise returns false, and the caller calls SendMessage().
  bool SendEager(uint32_t id, absl::string_view message, bool compressed,
                 bool last = false);
  // Sends the message. Returns false if the message is queued; OnSendAccepted()
  // then follows when the message has left the queue. Keeps the payload alive
  // until the peer has the message. If `last`, half-closes the stream after the
  // message.
  bool SendMessage(uint32_t id, memory::Payload message, bool compressed,
                   bool last = false);
  void SendHalfClose(uint32_t id) {
    AddInOrder(wire::FrameType::kHalfClose, id, absl::string_view());
  }
  void SendTrailers(uint32_t id, absl::string_view metadata) {
    Stream* const found = streams_->Find(id);
    if (found != nullptr) found->has_status = true;
    AddInOrder(wire::FrameType::kTrailers, id, metadata);
  }
  // Resets the stream at the peer, and drops its queued data. See Refusal() for
  // calls that may be retried.
  void SendReset(uint32_t id, const absl::Status& status);
  // Drops the queued data of a stream that is being cancelled.
  void DropUnsent(uint32_t id);

  // Handles a credit frame: the peer's application has read `credit` bytes of
  // the stream's window.
  void OnCredit(uint32_t id, uint64_t credit);
  // Handles the release of the message that was announced as `id`.
  void OnRelease(uint64_t id);

  // Begins to drain a detached stream, that is, to send its queued data.
  // Returns false if the queue is empty.
  bool Drain(Stream* stream);
  // Refunds the stream's charges to the budgets. Exposed bytes of the stream
  // stay charged until their release. Call before the stream is erased.
  void OnEnd(const Stream& stream);
  // Opens blocked streams and sends their queues, as far as the server's limit
  // now allows.
  void SendBlocked();
  // Sends and flushes the queues of congested streams.
  void SendCongested();
  bool has_congested() const { return !congested_.empty(); }

  // Returns true if the peer has released all announced messages.
  bool all_released() const { return exposures_.empty(); }
  size_t exposed() const { return exposures_.size(); }
  size_t eager_max_bytes() const { return meter_.eager_max_bytes(); }

 private:
  // Opens or blocks a client's stream at its first frame. Returns true if the
  // next frame must be queued.
  bool MustQueue(uint32_t id, Stream* stream);
  // Adds a metadata frame after the queued frames of its stream.
  void AddInOrder(wire::FrameType type, uint32_t id,
                  absl::string_view metadata);
  void SendQueued(uint32_t id);
  void AddCongested(uint32_t id, Stream* stream);
  bool IsEager(size_t bytes) const;
  // Returns the time, or 0 without a clock.
  uint64_t Now() const {
    return config_.tuning.now_ns == nullptr ? 0 : config_.tuning.now_ns();
  }
  bool MaySendMessage(const Stream& stream) const;
  void UseWindow(Stream* stream, size_t bytes);
  void AddEager(uint32_t id, Stream* stream, absl::string_view message,
                uint8_t flags);
  // Adds the message. Returns false if it could not be sent; the stream has
  // ended then.
  bool AddMessage(uint32_t id, Stream* stream, const memory::Payload& message,
                  uint8_t flags);
  // Exposes and announces the message. Returns false if the message cannot be
  // exposed.
  bool AddAnnounce(uint32_t id, Stream* stream, const memory::Payload& message,
                   uint8_t flags, uint64_t begun_ns);

  const Config& config_;
  StreamTable* const streams_;
  Admission* const admission_;
  Budget* const budget_;
  Sender* const sender_;
  FrameWriter* const writer_;
  Counters* const counters_;
  const Recorder* const recorder_;
  Owner* const owner_;
  SendMeter meter_;
  Exposures exposures_;
  fabric::Endpoint* fast_path_ = nullptr;  // null: not in use
  uint32_t fast_epoch_ = 0;
  uint64_t peer_window_ = 0;
  uint64_t unread_by_peer_ = 0;  // on all streams, as their windows count
  bool sending_blocked_ = false;
  base::Fifo<uint32_t> congested_;  // in the order of arrival
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_STREAM_OUTPUT_H_
