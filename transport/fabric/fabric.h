// The interface of all fabrics. It has the shape of RDMA, whatever moves the
// bytes.
//
// A fabric connects two processes by a pair of endpoints. An endpoint sends
// packets, and reads memory that the other side has exposed. The
// layers above (protocol, session) see these classes only.
//
// Threads: an endpoint has one owner, whose lock makes its calls exclusive. It
// delivers events from within Poll(), Read() or its own input functions, under
// that lock, and never from within Send().

#ifndef PENSTOCK_TRANSPORT_FABRIC_FABRIC_H_
#define PENSTOCK_TRANSPORT_FABRIC_FABRIC_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "transport/memory/bytes.h"
#include "transport/memory/destinations.h"

namespace penstock {
namespace fabric {

// Bounds a size that follows what a session measures. Left at zero, the size
// stays where it starts.
struct SizeRange {
  size_t least = 0;
  size_t most = 0;
};

// Says what an endpoint can do. Constant over the endpoint's life.
struct Capabilities {
  // The largest packet. At least wire::kMaxFrameBytes.
  size_t max_packet_bytes = 0;
  // The largest payload to send eagerly. Above it, announcing and reading costs
  // less than copying through packets. A session starts here, and moves within
  // eager_range as it measures.
  size_t eager_max_bytes = 0;
  SizeRange eager_range;
  // The size of the chunks that reads are cut into. A session starts here, and
  // moves within read_chunk_range as it measures.
  size_t read_chunk_bytes = 0;
  SizeRange read_chunk_range;
  // The number of reads to keep under way: enough to fill the pipe, few enough
  // not to delay what comes behind them.
  int max_reads = 0;
  // What Push() sends of a region, which is the size to give its first read. 0
  // if the fabric does not push.
  size_t push_bytes = 0;

  // Returns the largest size of one Read().
  size_t max_read_bytes() const {
    return std::max(read_chunk_bytes, read_chunk_range.most);
  }
  // True if Load() works, so that exposed memory can be used in place.
  bool can_load = false;
  // True if the session ends when this endpoint breaks. Packets sent over a
  // lifeline are lost only with the session, so nobody keeps them to send them
  // again.
  bool is_lifeline = false;
};

// Names a range of memory that the peer exposed. Means something to one pair of
// endpoints only. Its fields came from the peer: check them before use.
struct RemotePart {
  uint64_t key = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
};

// Names a payload that the peer exposed: its bytes, in order.
using RemoteRegion = std::vector<RemotePart>;

// A payload that the peer may read, until Withdraw(region).
struct Exposure {
  RemoteRegion region;
  // What the peer reads: the payload itself, or the fabric's copy of it, or
  // some of both. The caller keeps this for as long as it may need the bytes
  // again, and may let go of the payload it gave.
  memory::Payload stable;
};

// Receives what happens at an endpoint. Called under the lock of the endpoint's
// owner.
class EndpointEvents {
 public:
  virtual ~EndpointEvents() = default;
  // Receives one packet. The bytes are valid only during the call; the peer
  // cannot change them any more.
  virtual void OnPacket(absl::Span<const uint8_t> packet) = 0;
  // Tells that Send(), which returned false, may succeed again.
  virtual void OnWritable() = 0;
  // Ends the Read() that was given `cookie`: exactly once for each. The fabric
  // writes nothing to the destination after this.
  virtual void OnReadDone(uint64_t cookie, const absl::Status& status) = 0;
  // Tells that the peer rang: input may wait at another endpoint of the
  // session.
  virtual void OnDoorbell() = 0;
  // Tells that the endpoint is dead. The last event: reads that were under way
  // have had their OnReadDone(), with an error, before it.
  virtual void OnBroken(const absl::Status& cause) = 0;
};

// One end of a connection over one fabric. Its owner destroys it, which ends
// the connection and delivers no event. Memory that was loaded stays valid.
class Endpoint {
 public:
  virtual ~Endpoint() = default;

  virtual const Capabilities& capabilities() const = 0;
  // Returns what this connection is made of, for people: "ring 1 MiB".
  virtual std::string Describe() const = 0;
  // Sends events to `events` from now on. Call it before anything else, once.
  // `events` must outlive the endpoint.
  virtual void Start(EndpointEvents* events) = 0;

  // Sends one packet of at most max_packet_bytes, and has copied it on
  // return. Returns false, and sends nothing, if there is no credit:
  // OnWritable() follows.
  virtual bool Send(absl::Span<const uint8_t> packet) = 0;

  // As Send(), for a packet that the caller needs no more. May take it instead
  // of copying it; leaves it as it is if it returns false.
  virtual bool SendOwned(std::string* packet) {
    return Send(
        {reinterpret_cast<const uint8_t*>(packet->data()), packet->size()});
  }

  // Lets what is sent between these two leave together, at the end, with one
  // system call or one doorbell of a device. May be nested.
  virtual void BeginBatch() {}
  virtual void EndBatch() {}

  // Lets the peer read `payload` until Withdraw(). The region has at most
  // `max_parts` parts, which is at least 1: what lies in memory that the peer
  // can reach is exposed there, and the rest is copied. Returns
  // RESOURCE_EXHAUSTED in the normal course of things: send the payload over
  // another fabric then.
  virtual absl::StatusOr<Exposure> Expose(const memory::Payload& payload,
                                          size_t max_parts) = 0;
  // As Expose(), in one part, and promises the region's first push_bytes by
  // Push(), before the peer asks for them. The caller announces the region,
  // then calls Push() exactly once for each, in the order in which they were
  // exposed.
  virtual absl::StatusOr<Exposure> ExposeToPush(
      const memory::Payload& payload) {
    return Expose(payload, 1);
  }
  virtual void Push(const RemoteRegion& region) {}
  // Ends an exposure, since the peer has released it or its stream has ended. A
  // loan that the peer has loaded stays the peer's until it lets go. A read
  // that is still under way there may end with an error, with the same bytes,
  // or with others that were exposed to that peer. Ignores an unknown region.
  virtual void Withdraw(const RemoteRegion& region) = 0;

  // Returns memory to read into: of the kind that Read() fills at the least
  // cost, or of the heap where none of that is left. Valid after the endpoint
  // is gone.
  virtual absl::StatusOr<memory::Block> AllocateForRead(size_t size) {
    return memory::AllocateBlock(size);
  }
  // Prepares for reads into memory of the program's. Returns what the caller
  // holds until they have ended, or null: reads there cannot be had, or would
  // cost more than a copy from what AllocateForRead() returns.
  virtual std::shared_ptr<const void> PrepareToRead(
      const memory::Destination& into) {
    return nullptr;
  }
  // Copies [offset, offset + into.size()) of the part, 1 to max_read_bytes()
  // bytes, to `into`, and then calls OnReadDone(cookie), perhaps before it
  // returns. The caller keeps `into` valid until that, or until the endpoint is
  // destroyed. After OnBroken() a read ends with an error, or with the right
  // bytes.
  virtual void Read(const RemotePart& part, uint64_t offset,
                    absl::Span<uint8_t> into, uint64_t cookie) = 0;
  // Returns the whole region in place, a piece for each part, as a loan that
  // ends, on any thread, with the last share of the bytes. Needs can_load.
  virtual absl::StatusOr<memory::Payload> Load(const RemoteRegion& region) = 0;
  // Tells that this side reads nothing more of a region, which it has not
  // loaded. Call it once for each; no read may be under way there.
  virtual void GiveBack(const RemoteRegion& region) {}

  // Returns true if destroying this end now would lose nothing that it sent.
  // After it returned false, there is input to Poll() once that has changed.
  virtual bool IsDrained() { return true; }

  // Returns true if a call has found the endpoint dead, and only Poll() would
  // tell: it calls OnBroken(). So poll before you unlock, for no thread is
  // woken to do it.
  virtual bool HasFailed() const { return false; }

  // Whether Expose() would leave device memory in place now. Safe without the
  // lock.
  virtual bool TakesDeviceMemory() const { return false; }

  // Delivers some of what has arrived: a bounded amount. Returns whether there
  // was anything.
  virtual bool Poll() = 0;
  // Returns whether Poll() would find something. Cheap. Safe without the lock.
  virtual bool HasInput() const = 0;
  // Asks the peer to ring the lifeline's doorbell when it sends, or not to.
  // Look at HasInput() once more after arming: what came just before does not
  // ring. A fresh endpoint may be armed. Safe without the lock.
  virtual void SetArmed(bool armed) = 0;
  // Returns descriptors of which one becomes readable when, while armed, there
  // is input. The owner then calls ClearWakeup(), and Poll() until it returns
  // false. Empty if it is the lifeline's doorbell that wakes. The endpoint owns
  // them.
  virtual std::vector<int> wakeup_fds() const { return {}; }
  virtual void ClearWakeup() {}
  // Returns whether the peer wants to be rung for what was sent since the last
  // call.
  virtual bool TakeDoorbellRequest() = 0;
  // Rings the peer. Only a lifeline can.
  virtual void RingDoorbell() = 0;
};

// Gets the endpoint, which the callee owns, or why there is none.
using ConnectCallback =
    std::function<void(absl::StatusOr<std::unique_ptr<Endpoint>>)>;

// Cancels a pending Connect() or Listen() when destroyed. Does not wait for a
// callback that has begun: the callback must own what it touches.
class PendingConnect {
 public:
  virtual ~PendingConnect() = default;
};

// Makes connections of one kind beside the lifeline. Thread-safe. Calls each
// callback once, unless it is cancelled, on a thread of the fabric's, without
// locks.
class Fabric {
 public:
  virtual ~Fabric() = default;

  virtual absl::string_view name() const = 0;
  // Returns what this process's hello says of the fabric: how a peer reaches
  // it. Only the same fabric in the peer understands it. Returns an error, for
  // people, if the fabric cannot be used here.
  virtual absl::StatusOr<std::string> Offer() = 0;
  // Waits for the peer that presents `token`, for as long as the fabric allows.
  virtual std::unique_ptr<PendingConnect> Listen(absl::string_view token,
                                                 ConnectCallback done) = 0;
  // Reaches the peer that made `offer`, and presents `token` to it.
  virtual std::unique_ptr<PendingConnect> Connect(absl::string_view offer,
                                                  absl::string_view token,
                                                  ConnectCallback done) = 0;
};

}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_FABRIC_H_
