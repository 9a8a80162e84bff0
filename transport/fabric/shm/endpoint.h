// One end of a connection through shared memory.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_ENDPOINT_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_ENDPOINT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/shm/link.h"
#include "transport/fabric/shm/ring.h"

namespace penstock {
namespace fabric {
namespace shm {

// Messages go through a ring in each direction, large payloads through the
// arena, without a system call once a connection runs. It rings no doorbell:
// its owner asks TakeDoorbellRequest() after Send() and also after Poll(), for
// a peer that waits for room is woken as one that waits for messages.
//
// Threads: as fabric.h says. HasInput() and SetArmed() are for any thread. An
// event may destroy the endpoint.
class ShmEndpoint : public Endpoint {
 public:
  // The last step of setting up, on both sides.
  static absl::StatusOr<std::unique_ptr<Endpoint>> Create(
      PeerSocket socket, Segment control, PeerSegment peer_control,
      Sharing sharing);
  explicit ShmEndpoint(const std::shared_ptr<Link>& link);
  ~ShmEndpoint() override;

  const Capabilities& capabilities() const override;
  std::string Describe() const override;
  void Start(EndpointEvents* events) override;

  bool Send(absl::Span<const uint8_t> message) override;

  absl::StatusOr<Exposure> Expose(const memory::Payload& payload) override;
  // Ends the loan where nothing can be loaded; a Read() of it thereafter may
  // give other bytes of the peer's own domain, and the session's reader
  // releases a region after its last one. Else the loan is the peer's to end:
  // what it has loaded may outlive the session.
  void Withdraw(const RemoteRegion& region) override;

  // Ends within the call. Reading a region's last byte, or failing for want of
  // memory to map it, gives the region back,
  // as dropping what Load() returned does; whoever wants a region in pieces
  // reads them in order.
  void Read(const RemoteRegion& region, uint64_t offset,
            absl::Span<uint8_t> into, uint64_t cookie) override;
  absl::StatusOr<memory::Bytes> Load(const RemoteRegion& region) override;

  bool Poll() override;
  bool HasInput() const override;
  void SetArmed(bool armed) override;
  bool TakeDoorbellRequest() override;
  // Nothing: it is no lifeline.
  void RingDoorbell() override;

 private:
  // Delivers what is in the ring, within a budget. Returns how many.
  int Deliver(const bool& destroyed);
  absl::Status CopyRegion(const RemoteRegion& region, uint64_t offset,
                          absl::Span<uint8_t> into);
  // The first cause is what Poll() reports.
  void Fail(absl::Status cause);
  void Break(const absl::Status& cause);

  const std::shared_ptr<Link> link_;
  std::shared_ptr<ReadingShare> reading_;
  RingSender sender_;
  RingReceiver receiver_;
  EndpointEvents* events_ = nullptr;
  bool* destroyed_ = nullptr;  // of the Poll() under way
  bool unannounced_ = false;   // the peer has not been rung for something
  absl::Status failure_;
  std::atomic<bool> failed_{false};  // failure_ is set
  std::atomic<bool> broken_{false};  // OnBroken() has been delivered
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_ENDPOINT_H_
