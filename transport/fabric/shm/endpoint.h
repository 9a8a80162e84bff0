// One end of a connection through shared memory.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_ENDPOINT_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_ENDPOINT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/shm/link.h"
#include "transport/fabric/shm/ring.h"

namespace penstock {
namespace fabric {
namespace shm {

// Sends packets through a ring in each direction, and lends large payloads from
// the arena. Makes no system call on a running connection, except to wake a
// peer that sleeps.
//
// The owner calls TakeDoorbellRequest() after Send(), and also after Poll(),
// because a peer that waits for room must be woken, too. The function rings the
// peer's doorbell, once for each arming, and returns false. If the peer has
// passed no doorbell, the function returns true, and the caller rings by the
// lifeline.
//
// OnBroken() reports UNAVAILABLE if the peer has closed the path. All packets
// that the peer ever wrote have then been delivered. After any other cause, the
// peer may have written more packets.
//
// Threads: as fabric.h says. Any thread may call HasInput() and SetArmed(). An
// event may destroy the endpoint.
class ShmEndpoint : public Endpoint {
 public:
  // Makes the endpoint: the last step of the set-up, on both sides.
  static absl::StatusOr<std::unique_ptr<Endpoint>> Create(
      PeerSocket socket, Segment control, PeerSegment peer_control,
      Sharing sharing);
  explicit ShmEndpoint(const std::shared_ptr<Link>& link);
  ~ShmEndpoint() override;

  const Capabilities& capabilities() const override;
  std::string Describe() const override;
  void Start(EndpointEvents* events) override;

  bool Send(absl::Span<const uint8_t> packet) override;

  absl::StatusOr<Exposure> Expose(const memory::Payload& payload,
                                  size_t max_parts) override;
  // If the two sides copy, ends the loan. An honest peer has then read the
  // region. A hostile peer that reads later may get other bytes that were lent
  // to the same user. If the peer reads in place, does nothing: the peer ends
  // the loan itself, because loaded bytes may outlive the session.
  void Withdraw(const RemoteRegion& region) override;

  std::shared_ptr<const void> PrepareToRead(
      const memory::Destination& into) override {
    return HostMemoryAsItIs(into);
  }
  void Read(const RemotePart& part, uint64_t offset, absl::Span<uint8_t> into,
            uint64_t cookie) override;
  // Returns the region's bytes. The last reference to the bytes releases the
  // region. All parts must be of one loan; an honest peer's parts are. May open
  // a device allocation, which takes milliseconds. If opening fails, tells the
  // peer to copy instead.
  absl::StatusOr<memory::Payload> Load(const RemoteRegion& region) override;
  void GiveBack(const RemoteRegion& region) override;

  bool HasFailed() const override;
  bool TakesDeviceMemory() const override;
  bool Poll() override;
  bool HasInput() const override;
  void SetArmed(bool armed) override;
  // Returns this side's doorbell. Returns nothing if the peer has not received
  // it.
  std::vector<int> wakeup_fds() const override;
  // If armed, arms again with a new value, so that the peer rings again.
  void ClearWakeup() override;
  bool SendWakesPeer() const override;
  bool TakeDoorbellRequest() override;
  // Does nothing, because the endpoint is not a lifeline.
  void RingDoorbell() override;

 private:
  // Delivers packets from the ring, up to two budgets: one of packets, and one
  // of bytes that the events of these packets read. Returns the number of
  // packets. Stops when an event has set `destroyed`.
  int Deliver(const bool& destroyed);
  std::string DescribeDevices() const;
  absl::Status CopyPart(const RemotePart& part, uint64_t offset,
                        absl::Span<uint8_t> into);
  // Returns a value of ControlPage::armed other than the last one.
  uint32_t NextArming();
  // Records why the endpoint is broken. Poll() reports the first cause.
  void Fail(absl::Status cause);
  void Break(absl::Status cause);
  // Returns UNAVAILABLE if the peer has closed the path. Otherwise returns
  // ABORTED, because a living peer may still write to its ring.
  absl::Status WhyGone() const;

  const std::shared_ptr<Link> link_;
  std::shared_ptr<ReadingShare> reading_;
  RingSender sender_;
  RingReceiver receiver_;
  EndpointEvents* events_ = nullptr;
  bool* destroyed_ = nullptr;  // of the Poll() in progress
  size_t read_bytes_ = 0;      // of the peer's loans, in this Poll()
  bool unannounced_ = false;   // the peer has not been rung for some packet
  uint32_t rung_ = 0;  // the arming of the peer that its doorbell rang for
  std::atomic<uint32_t> armings_;
  absl::Status failure_;
  std::atomic<bool> failed_{false};  // failure_ is set
  std::atomic<bool> broken_{false};  // OnBroken() has been delivered
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_ENDPOINT_H_
