// One end of a connection over a queue pair.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_ENDPOINT_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_ENDPOINT_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/verbs/cm_connection.h"
#include "transport/fabric/verbs/exposer.h"
#include "transport/fabric/verbs/formats/credits.h"
#include "transport/fabric/verbs/formats/packet.h"
#include "transport/fabric/verbs/send_queue.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Sends packets from registered buffers (SEND), as far as credits allow. Lets
// the peer read payloads (READ). With windows, the peer reads by a key that
// ends with the exposure. Without windows, the peer reads by the key of a pool
// of copies. See exposer.h.
//
// Threads: as fabric.h says. An event may destroy the endpoint.
class VerbsEndpoint : public Endpoint {
 public:
  // Makes an endpoint. CmConnection::Begin() of `connection` has been called.
  static absl::StatusOr<std::unique_ptr<Endpoint>> Create(
      std::shared_ptr<CmConnection> connection);
  ~VerbsEndpoint() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  std::string Describe() const override { return connection_->Describe(); }
  void Start(EndpointEvents* events) override { events_ = events; }

  bool Send(absl::Span<const uint8_t> packet) override;
  void BeginBatch() override { ++batches_; }
  void EndBatch() override;

  absl::StatusOr<Exposure> Expose(const memory::Payload& payload,
                                  size_t max_parts) override;
  void Withdraw(const RemoteRegion& region) override;

  absl::StatusOr<memory::Block> AllocateForRead(size_t size) override;
  std::shared_ptr<const void> PrepareToRead(
      const memory::Destination& into) override {
    return connection_->domain()->PrepareToRead(into);
  }
  void Read(const RemotePart& part, uint64_t offset, absl::Span<uint8_t> into,
            uint64_t cookie) override;

  bool TakesDeviceMemory() const override {
    return !broken_ && connection_->domain()->may_expose_gpus();
  }

  bool Poll() override;
  bool HasInput() const override;
  void SetArmed(bool armed) override;
  std::vector<int> wakeup_fds() const override;
  void ClearWakeup() override;
  bool IsDrained() override;
  // Do nothing, because the device itself wakes threads.
  bool TakeDoorbellRequest() override { return false; }
  void RingDoorbell() override {}

 private:
  struct PendingRead {
    uint64_t address;
    uint32_t rkey;
    absl::Span<uint8_t> into;
    uint64_t cookie;
    Registered registered;                // of `into`
    memory::DeviceAccess* gpu = nullptr;  // the owner of that memory
  };

  VerbsEndpoint(std::shared_ptr<CmConnection> connection,
                std::shared_ptr<PoolLease> send_buffers);

  // Returns true if there are a credit, a buffer, and room in the queue.
  bool MaySend() const;
  void AddPacket(PacketHeader::Kind kind, absl::Span<const uint8_t> packet,
                 SendQueue::Signal signal);
  // Sends credits in a packet of their own, if enough are owed to the peer.
  void GrantIfDue();
  // Starts waiting reads, up to the limit of reads in flight.
  void StartReads();
  // Posts the added requests.
  void PostAdded();
  // Adds a signaled packet, so that the device reports the end of all earlier
  // requests. Adds nothing if a completion is due anyway. Requires MaySend().
  void AddProbe();
  // Posts the probe that the supervisor has requested.
  void ProbeIfDue();

  void Handle(const ibv_wc& completion);
  void OnReceived(const ibv_wc& completion);
  // Ends all requests up to the one of completion `wr_id`.
  void OnEnded(uint64_t wr_id);
  void EndOldestRead();
  void Break(absl::Status cause);

  const std::shared_ptr<CmConnection> connection_;
  const Capabilities capabilities_;
  EndpointEvents* events_ = nullptr;
  std::atomic<bool> broken_{false};  // OnBroken() has been delivered
  bool* destroyed_ = nullptr;        // of the Poll() in progress

  SendQueue queue_;
  Credits credits_;
  Exposer exposer_;
  const std::shared_ptr<PoolLease> send_buffers_;
  std::vector<uint32_t> free_buffers_;
  bool wants_to_send_ = false;
  int batches_ = 0;  // begun and not ended

  std::deque<PendingRead> waiting_reads_;
  std::deque<PendingRead> reads_;  // in flight, oldest first
  const int max_reads_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_ENDPOINT_H_
