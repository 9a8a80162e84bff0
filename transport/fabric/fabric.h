// The interface of all fabrics, modelled on RDMA.
//
// A fabric connects two processes by a pair of endpoints. An endpoint sends
// packets, and reads memory that the other side has exposed. The layers above
// (protocol, session) see these classes only.
//
// Threads: an endpoint has one owner, whose lock makes its calls exclusive.
// Events come from within Poll(), Read() or the endpoint's own input functions,
// under that lock, and never from within Send().

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

// The bounds of a size that a session adapts by measuring. If both bounds are
// zero, the size never changes.
struct SizeRange {
  size_t least = 0;
  size_t most = 0;
};

// The capabilities of an endpoint. Constant during the endpoint's life.
struct Capabilities {
  // Limits the size of a packet. At least wire::kMaxFrameBytes.
  size_t max_packet_bytes = 0;
  // Limits the size of a payload that is sent eagerly, that is, in packets.
  // Above the limit, announcing and reading the payload costs less than copying
  // it. A session starts with this limit, and adapts it within eager_range.
  size_t eager_max_bytes = 0;
  SizeRange eager_range;
  // The size of the chunks of a read. A session starts with this size, and
  // adapts it within read_chunk_range.
  size_t read_chunk_bytes = 0;
  SizeRange read_chunk_range;
  // The number of reads to keep in flight: enough to use the whole bandwidth,
  // and few enough not to delay later messages.
  int max_reads = 0;
  // The number of bytes that Push() sends of a region. Equals the size of the
  // region's first read. 0 if the fabric does not push.
  size_t push_bytes = 0;

  // Returns the largest size of one Read().
  size_t max_read_bytes() const {
    return std::max(read_chunk_bytes, read_chunk_range.most);
  }
  // True if Load() works, so that exposed memory can be used in place.
  bool can_load = false;
  // True if the session ends when this endpoint breaks. The session keeps no
  // copy of packets that it sends over a lifeline, because it never repeats
  // them.
  bool is_lifeline = false;
};

// Identifies a range of memory that the peer exposed. Valid only for one pair
// of endpoints. The fields come from the peer: check them before use.
struct RemotePart {
  uint64_t key = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
};

// Identifies a payload that the peer exposed: its parts, in order.
using RemoteRegion = std::vector<RemotePart>;

// A payload that the peer may read, until Withdraw(region).
struct Exposure {
  RemoteRegion region;
  // The bytes that the peer reads: the payload itself, the fabric's copy, or a
  // mix of both. The caller keeps this object as long as the bytes may be
  // needed again, and may release the original payload.
  memory::Payload stable;
};

// Returns a result of Endpoint::PrepareToRead() that holds nothing, for fabrics
// that write to the host's memory without preparation. Returns null for memory
// of a device.
inline std::shared_ptr<const void> HostMemoryAsItIs(
    const memory::Destination& into) {
  if (into.device != nullptr) return nullptr;
  // Points to the memory, but owns nothing.
  return {std::shared_ptr<const void>(), into.data};
}

// The receiver of an endpoint's events. Called under the lock of the endpoint's
// owner.
class EndpointEvents {
 public:
  virtual ~EndpointEvents() = default;
  // Receives one packet. The bytes are valid only during the call, and the peer
  // can no longer change them.
  virtual void OnPacket(absl::Span<const uint8_t> packet) = 0;
  // Announces that Send(), which returned false, may succeed again.
  virtual void OnWritable() = 0;
  // Reports the end of the Read() with this `cookie`. Called exactly once for
  // each Read(). Afterwards the fabric writes nothing to the read's
  // destination.
  virtual void OnReadDone(uint64_t cookie, const absl::Status& status) = 0;
  // Announces that the peer rang. Another endpoint of the session may have
  // input.
  virtual void OnDoorbell() = 0;
  // Reports that the endpoint is dead, as the last event. All reads in flight
  // have ended before, by OnReadDone() with an error.
  virtual void OnBroken(const absl::Status& cause) = 0;
};

// One end of a connection over one fabric. Destroying the endpoint ends the
// connection, and delivers no event. Loaded memory stays valid.
class Endpoint {
 public:
  virtual ~Endpoint() = default;

  virtual const Capabilities& capabilities() const = 0;
  // Describes the parts of this connection, for people: "ring 1 MiB".
  virtual std::string Describe() const = 0;
  // Sends events to `events` from now on. Call Start() once, before any other
  // function. `events` must outlive the endpoint.
  virtual void Start(EndpointEvents* events) = 0;

  // Sends one packet of at most max_packet_bytes. The packet has been copied on
  // return. If there is no credit, sends nothing and returns false;
  // OnWritable() follows.
  virtual bool Send(absl::Span<const uint8_t> packet) = 0;

  // Sends a packet as Send() does, but may take the packet's memory instead of
  // copying it. If this function returns false, the packet is unchanged.
  virtual bool SendOwned(std::string* packet) {
    return Send(
        {reinterpret_cast<const uint8_t*>(packet->data()), packet->size()});
  }

  // Enclose packets that should be sent together. EndBatch() sends the packets
  // with one system call, or with one doorbell of a device. Batches may be
  // nested.
  virtual void BeginBatch() {}
  virtual void EndBatch() {}

  // Lets the peer read `payload` until Withdraw(). The region has 1 to
  // `max_parts` parts. Exposes pieces without a copy if the peer can reach
  // their memory, and copies the others. RESOURCE_EXHAUSTED is a normal answer;
  // the caller then sends the payload over another fabric.
  virtual absl::StatusOr<Exposure> Expose(const memory::Payload& payload,
                                          size_t max_parts) = 0;
  // Exposes `payload` in one part, as Expose() does. The caller promises to
  // announce the region, and then to call Push() exactly once for each region,
  // in the order of exposure. Push() sends the region's first push_bytes before
  // the peer requests them.
  virtual absl::StatusOr<Exposure> ExposeToPush(
      const memory::Payload& payload) {
    return Expose(payload, 1);
  }
  virtual void Push(const RemoteRegion& region) {}
  // Ends an exposure, because the peer has released the region or its stream
  // has ended. A loan that the peer has loaded stays valid until the peer
  // releases it. A read in flight may end with an error, with the right bytes,
  // or with other bytes that were exposed to the same peer. Ignores an unknown
  // region.
  virtual void Withdraw(const RemoteRegion& region) = 0;

  // Returns memory to read into: preferably memory into which Read() is
  // cheapest, otherwise heap memory. The memory stays valid after the endpoint
  // is destroyed.
  virtual absl::StatusOr<memory::Block> AllocateForRead(size_t size) {
    return memory::AllocateBlock(size);
  }
  // Prepares the program's memory as a destination of reads. The caller holds
  // the result until the reads have ended. Returns null if reads into this
  // memory are impossible, or if a copy from memory of AllocateForRead() costs
  // less.
  virtual std::shared_ptr<const void> PrepareToRead(
      const memory::Destination& into) {
    return nullptr;
  }
  // Copies [offset, offset + into.size()) of the part, 1 to max_read_bytes()
  // bytes, to `into`. Then calls OnReadDone(cookie), perhaps before this
  // function returns. `into` must stay valid until then, or until the endpoint
  // is destroyed. After OnBroken() a read ends with an error, or with the right
  // bytes.
  virtual void Read(const RemotePart& part, uint64_t offset,
                    absl::Span<uint8_t> into, uint64_t cookie) = 0;
  // Takes the memory from the reads in flight with this `cookie`. They write
  // nothing from now on, and OnReadDone() still follows for each. Returns
  // false, and changes nothing, on a fabric whose device writes.
  virtual bool Divert(uint64_t cookie) { return false; }
  // Returns the whole region without a copy, with one piece for each part. The
  // last reference to the bytes ends the loan, on any thread. Requires
  // can_load.
  virtual absl::StatusOr<memory::Payload> Load(const RemoteRegion& region) {
    return absl::UnimplementedError("this fabric shares no memory");
  }
  // Releases a region that was not loaded: the region was read with Read(), or
  // not at all. (A loaded region is released by the last reference to its
  // bytes.) Call exactly once for each such region, with no read in flight.
  virtual void GiveBack(const RemoteRegion& region) {}

  // Returns true if the endpoint could be destroyed now without losing sent
  // data. After a false result, the endpoint gets input for Poll() when the
  // result becomes true.
  virtual bool IsDrained() { return true; }

  // Returns true if a call has found the endpoint dead, but OnBroken() is still
  // to come, from Poll(). Call Poll() before unlocking, because no other thread
  // is woken to do so.
  virtual bool HasFailed() const { return false; }

  // Returns true if Expose() would now expose device memory without a copy to
  // the host. Safe without the lock.
  virtual bool TakesDeviceMemory() const { return false; }

  // Delivers a bounded amount of the input. Returns true if there was any
  // input.
  virtual bool Poll() = 0;
  // Returns true if Poll() would find input. Cheap. Safe without the lock.
  virtual bool HasInput() const = 0;
  // Turns the peer's doorbell on or off. If armed, the peer rings when it
  // sends: through one of wakeup_fds(), or through the lifeline's doorbell.
  // After arming, check HasInput() once more, because input that arrived
  // earlier does not ring. A new endpoint may already be armed. Safe without
  // the lock.
  virtual void SetArmed(bool armed) = 0;
  // Returns the descriptors that wake the owner. While armed, one of them has
  // an event (EPOLLET) when there is input. The owner then polls, calls
  // ClearWakeup(), and polls again until HasInput() returns false, because
  // input before ClearWakeup() may cause no further event. Empty if the
  // lifeline's doorbell announces input. The endpoint owns the descriptors.
  // Remove them from an epoll set explicitly, because other processes may share
  // them.
  virtual std::vector<int> wakeup_fds() const { return {}; }
  virtual void ClearWakeup() {}
  // Returns false if a packet sent now reaches the peer without a wake-up or a
  // system call: the peer is polling, or has already been woken.
  virtual bool SendWakesPeer() const { return true; }
  // Wakes a sleeping peer for packets that were sent since the last call.
  // Returns true if the caller must instead call RingDoorbell() of the
  // lifeline.
  virtual bool TakeDoorbellRequest() = 0;
  // Rings the peer's doorbell. Only lifelines support this.
  virtual void RingDoorbell() = 0;
};

// Receives the endpoint, which the receiver owns, or the reason of a failure.
using ConnectCallback =
    std::function<void(absl::StatusOr<std::unique_ptr<Endpoint>>)>;

// A pending Connect() or Listen(). Destroying this object cancels the attempt.
// The attempt's callback may still be running afterwards, so the callback must
// own everything that it uses.
class PendingConnect {
 public:
  virtual ~PendingConnect() = default;
};

// Makes connections of one kind in addition to the lifeline. Thread-safe. Calls
// each callback once, on a thread of the fabric, without locks, unless the
// attempt is cancelled.
class Fabric {
 public:
  virtual ~Fabric() = default;

  virtual absl::string_view name() const = 0;
  // Returns the text, for the hello, by which a peer reaches this fabric. Only
  // the same fabric in the peer understands the text. If the fabric cannot be
  // used here, returns an error with the reason in words.
  virtual absl::StatusOr<std::string> Offer() = 0;
  // Waits for the peer that presents `token`, for as long as the fabric allows.
  virtual std::unique_ptr<PendingConnect> Listen(absl::string_view token,
                                                 ConnectCallback done) = 0;
  // Connects to the peer that made `offer`, and presents `token` to it.
  virtual std::unique_ptr<PendingConnect> Connect(absl::string_view offer,
                                                  absl::string_view token,
                                                  ConnectCallback done) = 0;
};

}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_FABRIC_H_
