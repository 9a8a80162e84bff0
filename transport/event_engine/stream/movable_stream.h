// A byte stream in two directions, each of which moves between TCP and a path.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_MOVABLE_STREAM_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_MOVABLE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "transport/event_engine/stream/backlog.h"
#include "transport/event_engine/stream/incoming.h"
#include "transport/event_engine/stream/outgoing.h"
#include "transport/event_engine/stream/tls_records.h"
#include "transport/fabric/fabric.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace event_engine {

// A stream that starts on TCP, moves to a path once there is one, and moves
// back when the path is lost. The caller reads and writes TCP:
//
//   to send       if on_path(): Write(), and Pump() later until idle().
//                 Otherwise: CountWritten(), and write to TCP.
//   on TCP's      Poll() if there is a path. Then OnTcp().
//   bytes
//   on the path's Poll()
//   input
//   after each    if has_lost_path(): write LeavePath() to TCP, before all
//   else. function      if !error().ok(): end the connection.
//
// Each side sends a greeting on a new path, and moves its own direction only
// after the peer's greeting has arrived: the greeting shows that the peer has
// the path, and will see kBegin before it interprets TCP's bytes. Without a
// greeting, all bytes stay on TCP.
//
// Between hosts, TCP's bytes may arrive before earlier bytes of the path. Such
// streams follow TLS's records, and a direction leaves TCP only between two
// records.
//
// Uses one path at a time. The owner calls all functions under its lock.
class MovableStream final : public fabric::EndpointEvents {
 public:
  MovableStream() : outgoing_(&consumed_) {}
  ~MovableStream() override = default;

  // Declares that the stream is between hosts. Call before the first bytes.
  // From then on, pass all bytes to NoteWritten() and OnTcp().
  void FollowRecords();
  // Stops following TLS's records, because the bytes are not those of TLS, or
  // because there is no path. Does nothing after MoveTo(), because the peer may
  // have moved.
  void IgnoreRecords();
  bool follows_records() const { return sent_records_.has_value(); }

  // Begins to use `path`. Does nothing if the stream already has a path. Call
  // this function for each path that the peer may have received, because the
  // peer may have moved to it.
  void MoveTo(std::shared_ptr<fabric::Endpoint> path);
  const std::shared_ptr<fabric::Endpoint>& path() const { return path_; }

  // The functions below are for sending.
  bool on_path() const { return outgoing_.on_path(); }
  // Reads the bytes of the next CountWritten(). Pass all bytes, in order.
  void NoteWritten(absl::Span<const uint8_t> bytes);
  void CountWritten(size_t size);
  void Write(const memory::Payload& bytes);
  void Pump() { outgoing_.Pump(); }
  // Sends a packet without bytes, so that the path rings the peer's doorbell
  // again.
  void Nudge();
  // Returns sent bytes that are no longer needed. Drop the bytes without the
  // lock, because a function of the program may then run.
  std::vector<memory::Payload> TakeReleased() {
    return outgoing_.TakeReleased();
  }
  // Returns true if all bytes are on TCP or on the path.
  bool idle() const { return outgoing_.idle(); }
  // Returns true if the path has bytes that the peer has not acknowledged.
  bool has_unacknowledged() const { return outgoing_.has_unacknowledged(); }

  // The functions below are for receiving. TCP bytes for which IsPlain()
  // returns true need not be passed to OnTcp().
  bool IsPlain(size_t size) const;
  void CountReceived(size_t size);
  void OnTcp(memory::Bytes bytes);
  // Delivers input of the path. Returns true if there was input.
  bool Poll();
  // Removes and returns the bytes that can be delivered now.
  memory::Payload Take();
  bool has_due() const { return due_.size() > 0; }

  // Returns true if the path is broken.
  bool has_lost_path() const { return lost_; }
  // Returns the reason for the loss of the path.
  const absl::Status& loss() const { return loss_; }
  // Closes the path; the peer notices this. If the peer has not moved to the
  // path yet, a cause other than UNAVAILABLE ends the connection.
  void LosePath(absl::Status cause);
  // Drops the lost path. Returns the bytes that TCP carries next.
  memory::Payload LeavePath();
  // Returns the first violation by the peer.
  const absl::Status& error() const { return error_; }

 private:
  void OnPacket(absl::Span<const uint8_t> packet) override;
  void OnWritable() override { outgoing_.Pump(); }
  void OnReadDone(uint64_t cookie, const absl::Status& status) override {}
  void OnDoorbell() override {}
  void OnBroken(const absl::Status& cause) override;

  // Moves the sending direction to the path, if the peer has the path.
  void MoveIfPossible();
  absl::Status Handle(const Packet& packet);
  absl::Status HandleBytes(absl::Span<const uint8_t> bytes, uint64_t offset);
  absl::Status HandleRegion(const Packet& packet);
  void Check(const absl::Status& status);

  uint64_t consumed_ = 0;
  uint64_t acked_ = 0;  // the value of consumed_ when the last ack was due
  Outgoing outgoing_;
  Incoming incoming_;
  Backlog due_;
  std::shared_ptr<fabric::Endpoint> path_;
  bool peer_has_greeted_ = false;            // on path_
  bool peer_has_moved_ = false;              // to path_
  absl::optional<TlsRecords> sent_records_;  // up to outgoing_.end()
  bool lost_ = false;
  absl::Status loss_;
  absl::Status error_;
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_MOVABLE_STREAM_H_
