#include "transport/fabric/shm/fabric.h"

#include <utility>

#include "transport/base/descriptors.h"
#include "transport/fabric/attempt.h"
#include "transport/fabric/shm/address.h"
#include "transport/fabric/shm/connector.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/fabric/timed_setup.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace shm {

ShmFabric::ShmFabric(Options options) : options_(std::move(options)) {}

absl::StatusOr<std::shared_ptr<Listener>> ShmFabric::GetListener() {
  if (!IsRingSize(options_.ring_bytes)) {
    return absl::InvalidArgumentError(
        "the ring's size is no power of two from 128 KiB to 1 MiB");
  }
  absl::Status kernel = CheckKernel();
  if (!kernel.ok()) return kernel;
  base::MutexLock lock(&mu_);
  if (listener_ != nullptr && listener_->IsForeign()) {
    // Leaks the parent's listener, whose lock may be held by a thread that the
    // child does not have.
    new std::shared_ptr<Listener>(std::move(listener_));
    listener_ = nullptr;
  }
  if (listener_ == nullptr) {
    absl::StatusOr<std::shared_ptr<Listener>> created =
        Listener::Create(options_);
    if (!created.ok()) return created.status();
    listener_ = *std::move(created);
  }
  return listener_;
}

absl::StatusOr<std::string> ShmFabric::Offer() {
  absl::StatusOr<std::shared_ptr<Listener>> listener = GetListener();
  if (!listener.ok()) return listener.status();
  return MakeOffer((*listener)->address());
}

std::unique_ptr<PendingConnect> ShmFabric::Listen(absl::string_view token,
                                                  ConnectCallback done) {
  auto attempt = std::make_shared<Attempt>(std::string(token), std::move(done));
  absl::Status room = base::Descriptors::Now().CheckForPath();
  if (!room.ok()) return FailLater(attempt, room);
  absl::StatusOr<std::shared_ptr<Listener>> listener = GetListener();
  if (!listener.ok()) return FailLater(attempt, listener.status());
  return (*listener)->Expect(std::move(attempt));
}

std::unique_ptr<PendingConnect> ShmFabric::Connect(absl::string_view offer,
                                                   absl::string_view token,
                                                   ConnectCallback done) {
  auto attempt = std::make_shared<Attempt>(std::string(token), std::move(done));
  absl::Status room = base::Descriptors::Now().CheckForPath();
  if (!room.ok()) return FailLater(attempt, room);
  absl::StatusOr<SocketAddress> address = AddressIn(offer, options_.directory);
  if (!address.ok()) return FailLater(attempt, address.status());
  absl::Status usable = CheckToken(token);
  if (!usable.ok()) return FailLater(attempt, usable);
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) return FailLater(attempt, loop.status());
  return TimedSetup::Launch(
      Connector::Create(options_, *loop, *std::move(address), attempt));
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
