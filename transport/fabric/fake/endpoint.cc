#include "transport/fabric/fake/endpoint.h"

namespace penstock {
namespace fabric {
namespace fake {
namespace {

// Limits the events that one Poll() delivers, as in the shm fabric.
constexpr int kPollBudget = 64;

}  // namespace

Endpoint::~Endpoint() { medium_->Close(side_); }

const Capabilities& Endpoint::capabilities() const {
  return medium_->capabilities();
}

std::string Endpoint::Describe() const { return "fake"; }

void Endpoint::Start(EndpointEvents* events) { medium_->Start(side_, events); }

bool Endpoint::Send(absl::Span<const uint8_t> packet) {
  return medium_->Send(side_, packet);
}

absl::StatusOr<Exposure> Endpoint::Expose(const memory::Payload& payload,
                                          size_t max_parts) {
  return medium_->Expose(side_, payload, max_parts);
}

void Endpoint::Withdraw(const RemoteRegion& region) {
  medium_->Withdraw(side_, region);
}

void Endpoint::Read(const RemotePart& part, uint64_t offset,
                    absl::Span<uint8_t> into, uint64_t cookie) {
  medium_->Read(side_, part, offset, into, cookie);
}

absl::StatusOr<memory::Payload> Endpoint::Load(const RemoteRegion& region) {
  return medium_->Load(side_, region);
}

bool Endpoint::HasFailed() const { return medium_->HasFailed(side_); }

bool Endpoint::Poll() {
  // Keeps the medium alive, because an event may destroy this endpoint.
  const std::shared_ptr<Medium> medium = medium_;
  const Side side = side_;
  int delivered = 0;
  while (delivered < kPollBudget && medium->Deliver(side)) ++delivered;
  return delivered > 0;
}

bool Endpoint::HasInput() const { return medium_->waiting(side_) > 0; }

void Endpoint::SetArmed(bool armed) { medium_->SetArmed(side_, armed); }

bool Endpoint::TakeDoorbellRequest() {
  return medium_->TakeDoorbellRequest(side_);
}

void Endpoint::RingDoorbell() { medium_->RingDoorbell(side_); }

}  // namespace fake
}  // namespace fabric
}  // namespace penstock
