// The receiving direction of a movable stream.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_INCOMING_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_INCOMING_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "transport/event_engine/stream/backlog.h"
#include "transport/event_engine/stream/packet.h"
#include "transport/event_engine/stream/tls_records.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace event_engine {

// Puts the bytes of one direction in order. The bytes arrive over TCP and over
// a path. Checks each offset that the peer sends. Not thread-safe.
//
//   state  event                        action                          next
//   tcp    OnBegin(S)                   note S                          tcp
//   tcp    TCP's bytes, up to a noted S skip duplicates, deliver        tcp
//   tcp    the path's bytes             keep                            tcp
//   tcp    TCP has reached the noted S  deliver the kept bytes          path
//   path   the path's bytes             deliver                         path
//   path   OnBegin(S) of a new path     note S                          path
//   path   a new path's bytes           keep                            path
//   path   a mark on TCP                TCP is at the mark's offset     tcp
//   tcp    a mark between two records   TCP is at the mark's offset     tcp
//   any    any other                    error: the connection ends
//
// Streams without records: a mark looks like any other bytes, so OnBegin() must
// come before the TCP bytes from its offset on are passed. On one host, it
// suffices to poll the path before passing TCP bytes.
//
// Streams with records: OnBegin() may come late or never. The bytes are TLS,
// and the sender leaves TCP only between two records. At that point, a mark
// cannot be mistaken for the beginning of a TLS record.
class Incoming {
 public:
  // Follows TLS's records. Call before the first bytes.
  void FollowRecords() { records_.emplace(); }
  // Stops following TLS's records. Requires !expects_marks().
  void IgnoreRecords() { records_.reset(); }
  bool has_records() const { return records_.has_value(); }
  // Expects marks from now on, because the peer may use a path.
  void ExpectMarks() { expects_marks_ = true; }
  bool expects_marks() const { return expects_marks_; }
  // Returns true, once, after the peer has left the path of the last OnBegin(),
  // or a path for which OnBegin() never came. Only for streams with records.
  bool TakePeerHasLeft() { return std::exchange(peer_has_left_, false); }

  // Returns the offset before which all bytes have been delivered.
  uint64_t received() const { return received_; }

  // Returns true if `size` bytes from TCP can be delivered unchanged. Then call
  // CountTcp() instead of OnTcp().
  bool IsPlain(size_t size) const;
  void CountTcp(size_t size);
  // Handles bytes from TCP. Appends the bytes that can be delivered now to
  // `*due`.
  absl::Status OnTcp(memory::Bytes bytes, Backlog* due);
  // Moves to a path at `offset`. Call it once for each path.
  absl::Status OnBegin(uint64_t offset, Backlog* due);
  // Handles bytes from the path. Appends the bytes that can be delivered now to
  // `*due`, which already holds delivered bytes that nobody has consumed. Fails
  // if the bytes exceed the window.
  absl::Status OnPath(uint64_t offset, const memory::Payload& bytes,
                      Backlog* due);

 private:
  // A move to a path: the offset at which the move begins, and the offset of
  // the path's next byte.
  struct Move {
    uint64_t begin = 0;
    uint64_t at = 0;
    Backlog early;  // the path's bytes, before TCP has reached `begin`
  };

  void TakePlain(memory::Bytes* bytes, Backlog* due);
  // Returns true if `bytes` begin with a mark rather than with the stream's
  // next bytes.
  bool IsMark(const memory::Bytes& bytes) const;
  absl::Status TakeMark(memory::Bytes* bytes);
  // Moves to the path if TCP has delivered all bytes before the noted offset.
  void MoveIfReached(Backlog* due);
  void Deliver(uint64_t offset, const memory::Bytes& bytes, Backlog* due);

  uint64_t received_ = 0;
  uint64_t tcp_at_ = 0;  // the offset of TCP's next byte
  bool on_path_ = false;
  Move path_;              // if on_path_
  std::deque<Move> next_;  // the noted moves, of which the last has a path
  size_t early_ = 0;       // the bytes in next_
  std::string mark_;       // the part of a mark that has come
  absl::optional<TlsRecords> records_;  // up to received_
  bool expects_marks_ = false;
  bool peer_has_left_ = false;
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_INCOMING_H_
