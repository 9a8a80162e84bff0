// What lies between the two ends of a fake link: the events that wait for each.

#ifndef PENSTOCK_TRANSPORT_FABRIC_FAKE_MEDIUM_H_
#define PENSTOCK_TRANSPORT_FABRIC_FAKE_MEDIUM_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/fake/line.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace fake {

enum class Side { kA, kB };

inline Side Other(Side side) { return side == Side::kA ? Side::kB : Side::kA; }

// The capabilities of both ends, small by default so that short messages reach
// every limit.
struct LinkOptions {
  size_t max_message_bytes = 64 * 1024;
  size_t eager_max_bytes = 1024;
  SizeRange eager_range;
  size_t read_chunk_bytes = 4096;
  SizeRange read_chunk_range;
  size_t push_bytes = 0;  // said, but nothing is pushed
  int max_reads = 4;
  bool can_load = false;
  bool is_lifeline = false;
  // Messages that may be under way in each direction.
  int credits = 64;
  // The time in nanoseconds. Where there is none, nothing takes any; else an
  // event can be delivered once it is due, as Link::SetSpeed() has it.
  std::function<uint64_t()> now_ns;
};

// What one side has done so far.
struct Counters {
  uint64_t messages = 0;
  uint64_t message_bytes = 0;
  uint64_t reads = 0;  // started
  uint64_t read_bytes = 0;
  uint64_t exposures = 0;
  uint64_t loads = 0;  // that succeeded
  uint64_t doorbells = 0;
};

// Given how many completions of reads wait for a side, says which of them (by
// age, from 0) comes first.
using ReadOrder = std::function<size_t(size_t waiting)>;

// Both endpoints and the link share it; see link.h for what it promises.
class Medium {
 public:
  explicit Medium(const LinkOptions& options);

  const Capabilities& capabilities() const { return capabilities_; }

  // For the endpoints.
  void Start(Side side, EndpointEvents* events);
  void Close(Side side);
  bool Send(Side from, absl::Span<const uint8_t> message);
  absl::StatusOr<Exposure> Expose(Side owner, const memory::Payload& payload);
  void Withdraw(Side owner, const RemoteRegion& region);
  void Read(Side reader, const RemoteRegion& region, uint64_t offset,
            absl::Span<uint8_t> into, uint64_t cookie);
  absl::StatusOr<memory::Bytes> Load(Side reader, const RemoteRegion& region);
  void SetArmed(Side side, bool armed) { end(side).armed = armed; }
  bool TakeDoorbellRequest(Side side);
  void RingDoorbell(Side from);

  // For the link. Delivers the oldest event that waits for `to`.
  bool Deliver(Side to);
  // The number of the oldest event for `to`, or 0 if none can be delivered.
  uint64_t OldestFor(Side to) const;
  size_t waiting(Side to) const { return end(to).waiting; }
  // When the oldest event for `to` can be delivered; UINT64_MAX: there is none.
  uint64_t DueFor(Side to) const;
  void SetSpeed(Side from, const Speed& speed) {
    lines_[static_cast<int>(from)].set_speed(speed);
  }
  // `side` is to learn that it is cut off; only its reads are kept, to end.
  void Break(Side side, const absl::Status& cause);
  void SetReadOrder(Side reader, ReadOrder order);
  // The nth from now on; 0: none.
  void FailNthSend(Side from, int n) { end(from).fail_send = n; }
  void FailNthRead(Side reader, int n) { end(reader).fail_read = n; }
  void FailNthExpose(Side owner, int n) { end(owner).fail_expose = n; }
  const Counters& counters(Side side) const { return end(side).counters; }
  size_t exposed(Side owner) const { return end(owner).exposed.size(); }
  int loans(Side reader) const { return *end(reader).loans; }

 private:
  struct Event {
    enum class Kind { kMessage, kWritable, kReadDone, kDoorbell, kBroken };
    Kind kind = Kind::kMessage;
    uint64_t number = 0;  // over both sides, by age
    uint64_t due_ns = 0;
    std::string message;
    // kReadDone: what is copied when the event is delivered.
    RemoteRegion region;
    uint64_t offset = 0;
    absl::Span<uint8_t> into;
    uint64_t cookie = 0;
    absl::Status status;  // kBroken, and of a read that is to fail
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
    bool unannounced = false;  // the peer has not been rung for something
    bool cut_off = false;      // kBroken is queued or was delivered, or closed
    absl::Status cause;        // of cut_off
    int under_way = 0;         // messages sent and not delivered
    bool wants_credit = false;
    std::map<uint64_t, Exposed> exposed;
    ReadOrder read_order;
    int fail_send = 0;
    int fail_read = 0;
    int fail_expose = 0;
    Counters counters;
    // Outlives the medium in loaded bytes.
    std::shared_ptr<std::atomic<int>> loans =
        std::make_shared<std::atomic<int>>(0);
  };

  End& end(Side side) { return ends_[static_cast<int>(side)]; }
  const End& end(Side side) const { return ends_[static_cast<int>(side)]; }
  Line& line(Side from) { return lines_[static_cast<int>(from)]; }
  uint64_t Now() const { return now_ns_ == nullptr ? 0 : now_ns_(); }
  void Queue(Side to, Event event);
  Event TakeNext(End* to);
  void ReturnCredit(Side sender);
  // The exposure that `region` names, if [offset, offset + length) is in it.
  absl::StatusOr<const Exposed*> Find(Side owner, const RemoteRegion& region,
                                      uint64_t offset, uint64_t length) const;
  absl::Status Copy(Side reader, const Event& read) const;

  const Capabilities capabilities_;
  const int credits_;
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
