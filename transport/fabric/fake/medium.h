// The shared state of a fake link: exposures, and waiting events.

#ifndef PENSTOCK_TRANSPORT_FABRIC_FAKE_MEDIUM_H_
#define PENSTOCK_TRANSPORT_FABRIC_FAKE_MEDIUM_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/fake/line.h"
#include "transport/memory/bytes.h"
#include "transport/memory/destinations.h"

namespace penstock {
namespace fabric {
namespace fake {

enum class Side { kA, kB };

inline Side Other(Side side) { return side == Side::kA ? Side::kB : Side::kA; }

// The capabilities of both ends. Small by default, so that tests reach every
// limit with short packets.
struct LinkOptions {
  size_t max_packet_bytes = 64 * 1024;
  size_t eager_max_bytes = 1024;
  SizeRange eager_range;
  size_t read_chunk_bytes = 4096;
  SizeRange read_chunk_range;
  size_t push_bytes = 0;  // stated, but nothing is pushed
  int max_reads = 4;
  bool can_load = false;
  // The smallest memory that PrepareToRead() accepts, in bytes. If 0,
  // PrepareToRead() accepts no memory.
  size_t min_destination_bytes = 0;
  // The result of Divert().
  bool can_divert = false;
  bool is_lifeline = false;
  // Limits the packets in flight in each direction.
  int credits = 64;
  // Returns the time in nanoseconds. If set, Link::SetSpeed() decides when an
  // event is due. If not set, events take no time.
  std::function<uint64_t()> now_ns;
};

// Counts the operations of one side.
struct Counters {
  uint64_t packets = 0;
  uint64_t packet_bytes = 0;
  uint64_t reads = 0;  // started
  uint64_t read_bytes = 0;
  uint64_t exposures = 0;
  uint64_t loads = 0;  // successful loads
  uint64_t given_back = 0;
  uint64_t doorbells = 0;
};

// Chooses the next read completion: returns an index below `waiting`. 0 is the
// oldest.
using ReadOrder = std::function<size_t(size_t waiting)>;

// The state that both endpoints share with their link. link.h documents its
// guarantees.
class Medium {
 public:
  explicit Medium(const LinkOptions& options);

  const Capabilities& capabilities() const { return capabilities_; }

  // These functions serve the endpoints.
  void Start(Side side, EndpointEvents* events);
  void Close(Side side);
  bool Send(Side from, absl::Span<const uint8_t> packet);
  absl::StatusOr<Exposure> Expose(Side owner, const memory::Payload& payload,
                                  size_t max_parts);
  bool HasFailed(Side side) const { return end(side).failed; }
  void Withdraw(Side owner, const RemoteRegion& region);
  void Read(Side reader, const RemotePart& part, uint64_t offset,
            absl::Span<uint8_t> into, uint64_t cookie);
  absl::StatusOr<memory::Payload> Load(Side reader, const RemoteRegion& region);
  std::shared_ptr<const void> PrepareToRead(Side reader,
                                            const memory::Destination& into);
  bool Divert(Side reader, uint64_t cookie);
  void GiveBack(Side reader) { ++end(reader).counters.given_back; }
  void SetArmed(Side side, bool armed) { end(side).armed = armed; }
  bool TakeDoorbellRequest(Side side);
  void RingDoorbell(Side from);

  // The functions below are for the link.
  //
  // Delivers the oldest event that waits for `to`. Returns false if there is
  // none.
  bool Deliver(Side to);
  // Returns the number of the oldest event for `to`, or 0 if none can be
  // delivered.
  uint64_t OldestFor(Side to) const;
  size_t waiting(Side to) const { return end(to).waiting; }
  // Returns the due time of the oldest event for `to`, or UINT64_MAX if there
  // is none.
  uint64_t DueFor(Side to) const;
  void SetSpeed(Side from, const Speed& speed) {
    lines_[static_cast<int>(from)].set_speed(speed);
  }
  // Cuts `side` off: drops its events and queues its OnBroken(). Keeps the
  // completions of its reads.
  void Break(Side side, const absl::Status& cause);
  void SetReadOrder(Side reader, ReadOrder order);
  // Make the nth call from now on fail; 0 makes none fail.
  void FailNthSend(Side from, int n) { end(from).fail_send = n; }
  void FailNthRead(Side reader, int n) { end(reader).fail_read = n; }
  void FailNthExpose(Side owner, int n) { end(owner).fail_expose = n; }
  const Counters& counters(Side side) const { return end(side).counters; }
  size_t exposed(Side owner) const { return end(owner).exposed.size(); }
  int loans(Side reader) const { return *end(reader).loans; }
  int prepared(Side reader) const { return *end(reader).prepared; }

 private:
  struct Event {
    enum class Kind { kPacket, kWritable, kReadDone, kDoorbell, kBroken };
    Kind kind = Kind::kPacket;
    uint64_t number = 0;  // over both sides, by age
    uint64_t due_ns = 0;
    std::string packet;
    // The memory to read, for a kReadDone. The bytes are copied when the event
    // is delivered.
    RemotePart part;
    uint64_t offset = 0;
    absl::Span<uint8_t> into;
    uint64_t cookie = 0;
    bool is_diverted = false;  // copies nothing
    absl::Status status;       // kBroken, and a read that will fail
  };

  struct Exposed {
    uint64_t base = 0;  // the offset of the first byte
    memory::Payload payload;
  };

  struct End {
    EndpointEvents* events = nullptr;
    std::deque<Event> queue;
    std::atomic<size_t> waiting{0};  // queue.size(), for any thread
    std::atomic<bool> armed{false};
    bool unannounced = false;  // the peer has not been rung for some packet
    bool cut_off = false;      // kBroken is queued or was delivered, or closed
    absl::Status cause;        // of cut_off
    bool failed = false;       // in Send(); kBroken is queued
    int under_way = 0;         // packets sent and not delivered
    bool wants_credit = false;
    std::map<uint64_t, Exposed> exposed;
    ReadOrder read_order;
    int fail_send = 0;
    int fail_read = 0;
    int fail_expose = 0;
    Counters counters;
    // Counters that may outlive the medium, because loaded bytes and results of
    // PrepareToRead() refer to them.
    std::shared_ptr<std::atomic<int>> loans =
        std::make_shared<std::atomic<int>>(0);
    std::shared_ptr<std::atomic<int>> prepared =
        std::make_shared<std::atomic<int>>(0);
  };

  End& end(Side side) { return ends_[static_cast<int>(side)]; }
  const End& end(Side side) const { return ends_[static_cast<int>(side)]; }
  Line& line(Side from) { return lines_[static_cast<int>(from)]; }
  uint64_t Now() const { return now_ns_ == nullptr ? 0 : now_ns_(); }
  void Queue(Side to, Event event);
  Event TakeNext(End* to);
  void ReturnCredit(Side sender);
  // Returns the bytes [offset, offset + length) of `part`, if they are within
  // the exposed bytes.
  absl::StatusOr<std::vector<memory::Bytes>> Find(Side owner,
                                                  const RemotePart& part,
                                                  uint64_t offset,
                                                  uint64_t length) const;
  absl::Status Copy(Side reader, const Event& read) const;

  const Capabilities capabilities_;
  const int credits_;
  const size_t min_destination_bytes_;
  const bool can_divert_;
  const std::function<uint64_t()> now_ns_;
  uint64_t next_number_ = 1;
  uint64_t next_key_ = 1;
  End ends_[2];
  Line lines_[2];
};

}  // namespace fake
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_FAKE_MEDIUM_H_
