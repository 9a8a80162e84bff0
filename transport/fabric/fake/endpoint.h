// One end of a fake link.

#ifndef PENSTOCK_TRANSPORT_FABRIC_FAKE_ENDPOINT_H_
#define PENSTOCK_TRANSPORT_FABRIC_FAKE_ENDPOINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "transport/fabric/fabric.h"
#include "transport/fabric/fake/medium.h"

namespace penstock {
namespace fabric {
namespace fake {

// An end of a fake link. Poll() delivers a bounded number of the events that
// wait for this end, as Link::Step() does. An event may destroy the endpoint.
// One thread at a time may use both ends and the link. Any thread may call
// HasInput() and SetArmed().
class Endpoint : public fabric::Endpoint {
 public:
  Endpoint(std::shared_ptr<Medium> medium, Side side)
      : medium_(std::move(medium)), side_(side) {}
  ~Endpoint() override;

  const Capabilities& capabilities() const override;
  std::string Describe() const override;
  void Start(EndpointEvents* events) override;
  // Breaks the link if the packet exceeds max_packet_bytes.
  bool Send(absl::Span<const uint8_t> packet) override;
  absl::StatusOr<Exposure> Expose(const memory::Payload& payload,
                                  size_t max_parts) override;
  void Withdraw(const RemoteRegion& region) override;
  std::shared_ptr<const void> PrepareToRead(
      const memory::Destination& into) override {
    return medium_->PrepareToRead(side_, into);
  }
  // Adds a read. The bytes are copied when the read's completion is delivered.
  // The read fails if `into` exceeds max_read_bytes().
  void Read(const RemotePart& part, uint64_t offset, absl::Span<uint8_t> into,
            uint64_t cookie) override;
  bool Divert(uint64_t cookie) override {
    return medium_->Divert(side_, cookie);
  }
  absl::StatusOr<memory::Payload> Load(const RemoteRegion& region) override;
  void GiveBack(const RemoteRegion&) override { medium_->GiveBack(side_); }
  bool HasFailed() const override;
  bool Poll() override;
  bool HasInput() const override;
  void SetArmed(bool armed) override;
  bool TakeDoorbellRequest() override;
  void RingDoorbell() override;

 private:
  const std::shared_ptr<Medium> medium_;
  const Side side_;
};

}  // namespace fake
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_FAKE_ENDPOINT_H_
