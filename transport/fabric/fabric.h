// What a fabric is: the shape of RDMA, whatever moves the bytes.
//
// A fabric connects two processes by a pair of endpoints. An endpoint sends
// bounded messages and reads memory that the other side exposed. Everything
// above (protocol, session) sees only these classes.
//
// Threads: one endpoint is used by one thread at a time; its owner has the
// lock. Events are delivered from within Poll(), Read() or the fabric's own
// input functions, never from within Send(), and always under the owner's lock.

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

namespace penstock {
namespace fabric {

// How far a size may move from where it starts. Without bounds, nowhere.
struct SizeRange {
  size_t least = 0;
  size_t most = 0;
};

// What an endpoint can do. Constant over its life.
struct Capabilities {
  // Every fabric takes at least wire::kMaxFrameBytes.
  size_t max_message_bytes = 0;
  // The switch from eager to rendezvous: above this size announcing and
  // reading costs less than copying through messages. This is where a session
  // starts; it may follow what it measures.
  size_t eager_max_bytes = 0;
  SizeRange eager_range;
  // Reads are cut into pieces of this size, and this many are under way at
  // once: enough to fill the pipe, few enough not to delay what comes behind.
  // The size is a start too.
  size_t read_chunk_bytes = 0;
  SizeRange read_chunk_range;
  int max_reads = 0;
  // Where not 0, what Push() sends of a region: the first read is to be of that
  // size.
  size_t push_bytes = 0;

  // Of a single read.
  size_t max_read_bytes() const {
    return std::max(read_chunk_bytes, read_chunk_range.most);
  }
  // Load() works: exposed memory can be used in place.
  bool can_load = false;
  // Loses nothing that it took unless it breaks, and the session ends with
  // it: messages need not be kept for sending them again.
  bool is_lifeline = false;
};

// Names memory that the peer exposed. Meaningful to one endpoint pair only;
// everything in it came from the peer and is checked before use.
struct RemoteRegion {
  uint64_t key = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
};

// An exposed payload. `stable` is what the region's bytes are read from: the
// payload itself, or the fabric's own copy of it, after which the caller may
// let go of the payload.
struct Exposure {
  RemoteRegion region;
  memory::Payload stable;
};

// Receives what happens at an endpoint.
class EndpointEvents {
 public:
  virtual ~EndpointEvents() = default;
  // One message, private memory, valid only during the call.
  virtual void OnMessage(absl::Span<const uint8_t> message) = 0;
  // Send() may succeed again after it returned false.
  virtual void OnWritable() = 0;
  // The Read() with this cookie has ended, exactly once; the destination is no
  // longer written to.
  virtual void OnReadDone(uint64_t cookie, const absl::Status& status) = 0;
  // The peer rang: something may wait at another endpoint of the session.
  virtual void OnDoorbell() = 0;
  // The endpoint is dead; it delivers nothing more, except OnReadDone with an
  // error for each Read still under way, before this.
  virtual void OnBroken(const absl::Status& cause) = 0;
};

// One end of a connection over one fabric. Destroying it ends the connection
// without further events; memory that was loaded stays valid.
class Endpoint {
 public:
  virtual ~Endpoint() = default;

  virtual const Capabilities& capabilities() const = 0;
  // What this connection is made of, for people: "ring 1 MiB".
  virtual std::string Describe() const = 0;
  // Before anything else; `events` outlives the endpoint.
  virtual void Start(EndpointEvents* events) = 0;

  // Sends one message, at most max_message_bytes, which is copied before it
  // returns. False: no credit, and OnWritable() will follow.
  virtual bool Send(absl::Span<const uint8_t> message) = 0;

  // The same with a message that the caller needs no more, which is taken if
  // the result is true: some fabrics need not copy it.
  virtual bool SendOwned(std::string* message) {
    return Send(
        {reinterpret_cast<const uint8_t*>(message->data()), message->size()});
  }

  // What is sent between these two may leave together, at the end: one system
  // call, one doorbell of a device. They may nest.
  virtual void BeginBatch() {}
  virtual void EndBatch() {}

  // Lets the peer read `payload` until Withdraw(). RESOURCE_EXHAUSTED is a
  // normal answer: the payload then goes over another fabric.
  virtual absl::StatusOr<Exposure> Expose(const memory::Payload& payload) = 0;
  // The same for a peer that is about to read, and without a fast path: its
  // first read, of push_bytes from the beginning, will be answered by Push(),
  // unasked. So Push() follows, exactly once for each, in the order of
  // exposing, and once the peer has been told of the region.
  virtual absl::StatusOr<Exposure> ExposeToPush(
      const memory::Payload& payload) {
    return Expose(payload);
  }
  virtual void Push(const RemoteRegion& region) {}
  // The session needs the region no more, for the peer has released it. What
  // the peer has loaded stays its own until it lets go; what it still reads may
  // be an error, the same bytes, or others that were exposed to it. An unknown
  // region is ignored.
  virtual void Withdraw(const RemoteRegion& region) = 0;

  // Memory that Read() fills at the least cost, where there is some left;
  // else of the heap. It may be kept after the endpoint is gone.
  virtual absl::StatusOr<memory::Block> AllocateForRead(size_t size) {
    return memory::AllocateBlock(size);
  }
  // Copies [offset, offset + into.size()) of the region, 1 to max_read_bytes()
  // of them, to `into`, which stays valid until OnReadDone(cookie). After
  // OnBroken() it is an error, or still the right bytes.
  virtual void Read(const RemoteRegion& region, uint64_t offset,
                    absl::Span<uint8_t> into, uint64_t cookie) = 0;
  // The whole region in place, where can_load; the peer gets it back when the
  // last share of the returned bytes is gone.
  virtual absl::StatusOr<memory::Bytes> Load(const RemoteRegion& region) = 0;

  // Nothing that was sent would be lost by destroying this end now. After
  // false, there will be input when that has changed.
  virtual bool IsDrained() { return true; }

  // Delivers what has arrived, a bounded amount. True if there was anything.
  virtual bool Poll() = 0;
  // Whether Poll() would find something: cheap, and safe without the lock.
  virtual bool HasInput() const = 0;
  // While armed, the peer rings the lifeline's doorbell when it sends. Safe
  // without the lock. After arming, look at HasInput() once more. A fresh
  // endpoint may be armed.
  virtual void SetArmed(bool armed) = 0;
  // Descriptors of which one becomes readable when, while armed, there is
  // input; the owner then calls ClearWakeup(), and Poll() until it returns
  // false. None: the lifeline's doorbell wakes.
  virtual std::vector<int> wakeup_fds() const { return {}; }
  virtual void ClearWakeup() {}
  // Whether the peer wants to be rung for what was sent since the last call.
  virtual bool TakeDoorbellRequest() = 0;
  // Rings the peer. Only lifelines can.
  virtual void RingDoorbell() = 0;
};

using ConnectCallback =
    std::function<void(absl::StatusOr<std::unique_ptr<Endpoint>>)>;

// Cancels a pending Connect or Listen when destroyed. A callback that has begun
// by then goes on: it must own what it touches.
class PendingConnect {
 public:
  virtual ~PendingConnect() = default;
};

// A kind of connection that is set up beside the lifeline. Thread-safe;
// callbacks run on a thread of the fabric's, holding no lock.
class Fabric {
 public:
  virtual ~Fabric() = default;

  virtual absl::string_view name() const = 0;
  // What this process's hello says about it: how a peer reaches it. Opaque to
  // all but the same fabric in the peer. An error is the reason that the
  // fabric cannot be used here.
  virtual absl::StatusOr<std::string> Offer() = 0;
  // Waits for the peer that presents `token`.
  virtual std::unique_ptr<PendingConnect> Listen(absl::string_view token,
                                                 ConnectCallback done) = 0;
  // Reaches the peer that made `offer`, presenting `token`.
  virtual std::unique_ptr<PendingConnect> Connect(absl::string_view offer,
                                                  absl::string_view token,
                                                  ConnectCallback done) = 0;
};

}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_FABRIC_H_
