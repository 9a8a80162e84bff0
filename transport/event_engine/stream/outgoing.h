// The sending direction of a movable stream.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_OUTGOING_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_OUTGOING_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "transport/event_engine/stream/packet.h"
#include "transport/fabric/fabric.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace event_engine {

// Caps the unacknowledged bytes of a direction on the path, at four messages of
// 1 MiB. The sender keeps these bytes, and the receiver may have to keep them,
// too.
constexpr uint64_t kWindowBytes = 4 * 1024 * 1024;

// Caps the unacknowledged packets, because each needs memory of its own. The
// cap is above the number of bytes after which a receiver acknowledges, so that
// even packets of one byte are acknowledged in time.
constexpr size_t kMaxKeptPackets = 48 * 1024;

// Counts the offsets of one direction, and keeps the bytes on the path until
// the peer has acknowledged them. Not thread-safe.
//
//   state   event              action                              next
//   tcp     CountTcp           count                               tcp
//   tcp     MoveTo(path)       send kBegin                         path
//   path    Write              send as the window and path allow   path
//   path    room, Acknowledge  send the rest                       path
//   path    MoveBack           return mark, kept and unsent bytes  tcp
class Outgoing {
 public:
  // `consumed` is the number of bytes of the other direction that this side has
  // consumed. Each sent packet acknowledges these bytes.
  explicit Outgoing(const uint64_t* consumed) : consumed_(consumed) {}
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;

  bool on_path() const { return path_ != nullptr; }
  // Returns the offset after the last byte that the program has written.
  uint64_t end() const { return end_; }
  // Returns true if all bytes are on TCP or on the path.
  bool idle() const { return waiting_.empty() && stuck_.empty(); }

  // Returns true if the path has bytes that the peer has not acknowledged.
  bool has_unacknowledged() const { return on_path() && acknowledged_ < end_; }

  // Counts `size` bytes that follow on TCP. Requires !on_path().
  void CountTcp(size_t size) { end_ += size; }
  // Moves to `path`, which stays valid until MoveBack(). Requires !on_path().
  void MoveTo(fabric::Endpoint* path);
  // Appends to the stream. Requires on_path(). The bytes have owners.
  void Write(const memory::Payload& bytes);
  // Sends what the window and the path allow.
  void Pump();
  // Sends an acknowledgement, unless a packet has already carried it.
  void SendAck();
  // Releases the bytes before `offset`, which the peer has acknowledged.
  // Returns INVALID_ARGUMENT if some of these bytes were never sent.
  absl::Status Acknowledge(uint64_t offset);
  // Leaves the path, which may be broken. Returns the bytes to send over TCP:
  // the mark, and all unacknowledged bytes. The mark is omitted if the path did
  // not even accept kBegin. Requires on_path().
  memory::Payload MoveBack();
  // Returns bytes that are no longer needed. The caller drops the bytes without
  // its lock, because a function of the program may then run.
  std::vector<memory::Payload> TakeReleased();

 private:
  // Bytes on the path that are not acknowledged.
  struct Kept {
    uint64_t end = 0;
    memory::Payload bytes;
    fabric::RemoteRegion region;  // empty for bytes in packets
  };

  // Returns true if the window has room for another packet.
  bool HasWindow() const;
  bool SendPacket(const Packet& packet);
  // Send the first waiting bytes. Return false if the path has no room.
  bool SendSome();
  bool SendBytes(size_t size);
  // Sends the first bytes as a region. Returns false if the path has no room,
  // or if the path cannot expose memory now. In the second case sets `*exposed`
  // to false.
  bool SendRegion(size_t size, bool* exposed);
  // Removes the first `size` waiting bytes, and returns them.
  memory::Payload TakeWaiting(size_t size);
  memory::Payload FirstWaiting(size_t size) const;
  memory::Bytes NewMark() const;

  const uint64_t* const consumed_;
  fabric::Endpoint* path_ = nullptr;
  bool has_begun_ = false;     // the path has taken kBegin
  uint64_t end_ = 0;           // of the program's bytes
  uint64_t sent_ = 0;          // before this offset all is on TCP or the path
  uint64_t acknowledged_ = 0;  // by the peer; at least where the path began
  uint64_t told_ = 0;          // the last acknowledgement that was sent
  std::deque<memory::Bytes> waiting_;
  std::deque<Kept> kept_;
  std::vector<memory::Payload> released_;
  // A packet for which the path had no room. Sent before all others.
  std::string stuck_;
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_OUTGOING_H_
