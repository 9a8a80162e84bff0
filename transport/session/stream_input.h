// Turns received frames into stream events.

#ifndef PENSTOCK_TRANSPORT_SESSION_STREAM_INPUT_H_
#define PENSTOCK_TRANSPORT_SESSION_STREAM_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "transport/base/buffer_pool.h"
#include "transport/fabric/fabric.h"
#include "transport/memory/bytes.h"
#include "transport/memory/destinations.h"
#include "transport/protocol/inbox.h"
#include "transport/session/budget.h"
#include "transport/session/config.h"
#include "transport/session/counters.h"
#include "transport/session/events.h"
#include "transport/session/frame_writer.h"
#include "transport/session/message_reader.h"
#include "transport/session/parts.h"
#include "transport/session/stream_table.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {

// The receiving side of a session's streams. Delivers a stream's events in the
// order of its frames. The inbox keeps the items of an unattached stream, and
// the items that follow a message that is still being read. Drops frames for
// ended streams.
//
// A message has two answers, its release and its credit. With
// Config::defers_answers, both wait until the response or the next call is
// sent. Exception: the peer may need them earlier, because it may send more in
// the stream, or because it polls. Not thread-safe.
class StreamInput : private MessageReader::Owner {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // Reports that a message of `stream` cannot be read. The stream exists.
    virtual void FailStream(uint32_t stream, const absl::Status& status) = 0;
  };

  // Refers to the arguments and to the objects in `parts`. All must outlive
  // this object.
  StreamInput(const Parts& parts, StreamTable* streams, Owner* owner);

  // Switches to `path`, which announcements name by `epoch`.
  void UseFastPath(fabric::Endpoint* path, uint32_t epoch) {
    reader_.UseFastPath(path, epoch);
  }
  // Restarts the fast path's reads on the lifeline; see MessageReader.
  MessageReader::Filled LoseFastPath() { return reader_.LoseFastPath(); }
  MessageReader::Filled Stop() { return reader_.Stop(); }
  void OnReadDone(uint64_t cookie, const absl::Status& status) {
    reader_.OnReadDone(cookie, status);
  }

  // Charges the budget for the memory of `stream`, which the peer has just
  // opened.
  void OnOpened(Stream* stream);
  // Delivers what was received before the stream was attached.
  void OnAttached(uint32_t id);
  // Drops what was received for the stream.
  void OnDetached(uint32_t id, Stream* stream);

  // Handle frames. An error ends the session, because no honest peer causes
  // one.
  absl::Status OnMetadata(uint32_t id, protocol::Inbox::Kind kind,
                          absl::Span<const uint8_t> metadata);
  absl::Status OnEager(const wire::FrameHeader& header,
                       absl::Span<const uint8_t> message);
  absl::Status OnAnnounce(const wire::FrameHeader& header,
                          absl::Span<const uint8_t> payload);

  // The functions below are for users of the session. The functions ignore a
  // stream that has ended.
  //
  // Offers `destinations` to the stream's next message. A part of an announced
  // message is read into a destination of exactly its size, if the path can
  // read into that destination. All destinations stay taken while a piece of
  // the message is in one of them. A message that was announced before goes
  // elsewhere.
  void PostDestinations(uint32_t id,
                        std::shared_ptr<memory::Destinations> destinations);
  // Reads the stream's next message regardless of the budget. Call when the
  // application asks for the message.
  void WantMessage(uint32_t id);
  // Returns the window's credit to the peer. Call when the application has
  // taken the oldest message.
  void Consumed(uint32_t id);

  // Sends the deferred answers if the peer may need one of them, or if `all`.
  // Call before each flush.
  void SendAwaited(bool all);

  size_t chunk_bytes(const fabric::Endpoint* path) const {
    return reader_.chunk_bytes(path);
  }
  uint64_t read_bytes() const { return reader_.in_use(); }

 private:
  absl::Status ChargeWindow(Stream* stream, uint64_t bytes, Stream::Way way);
  // Returns true for an announced message above the maximum receive size.
  bool IsTooLarge(uint64_t bytes) const {
    return config_.max_receive_bytes >= 0 &&
           bytes > static_cast<uint64_t>(config_.max_receive_bytes);
  }
  void OnStatus(Stream* stream);
  // Hold() charges the budget for memory that a client makes a server hold.
  // LetGo() refunds the charge.
  void Hold(Stream* stream, uint64_t bytes);
  void LetGo(Stream* stream, uint64_t bytes);
  // Returns true if received items may be delivered immediately, without the
  // inbox.
  static bool TakesInput(const Stream& stream) {
    return stream.events != nullptr && stream.inbox.empty();
  }
  std::string Copy(absl::Span<const uint8_t> bytes);
  void DeliverInbox(uint32_t id);
  void StartIfWanted(const Stream& stream);
  void SendCredit(uint32_t id, uint64_t credit);
  // Adds or defers the answer `frame` to a message of the stream `id`.
  void Answer(uint32_t id, const wire::FrameHeader& frame,
              absl::string_view payload, bool may_wait);

  void OnMessageRead(uint32_t id, uint64_t announcement,
                     absl::StatusOr<memory::Payload> message,
                     uint64_t budgeted) override;
  void OnRegionReleased(uint32_t id, uint64_t announcement,
                        bool may_wait) override;

  const Config& config_;
  StreamTable* const streams_;
  Budget* const budget_;
  FrameWriter* const writer_;
  Counters* const counters_;
  const Recorder* const recorder_;
  base::BufferPool* const buffers_;
  Owner* const owner_;
  MessageReader reader_;
  uint64_t last_announced_ = 0;  // the id of the peer's latest one
  // The streams whose answers were deferred since the last SendAwaited().
  std::vector<uint32_t> answered_;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_STREAM_INPUT_H_
