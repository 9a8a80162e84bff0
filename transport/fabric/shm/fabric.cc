#include "transport/fabric/shm/fabric.h"

#include <utility>

#include "transport/fabric/shm/address.h"
#include "transport/fabric/shm/connector.h"
#include "transport/fabric/shm/control.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// A callback never runs within the call that was given it. Where there is no
// event loop to run it elsewhere there is no choice.
void FinishLater(const std::shared_ptr<Attempt>& attempt,
                 const absl::Status& status) {
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) {
    attempt->Finish(status);
    return;
  }
  (*loop)->Post([attempt, status] { attempt->Finish(status); });
}

}  // namespace

ShmFabric::ShmFabric(Options options) : options_(std::move(options)) {}

absl::StatusOr<std::shared_ptr<Listener>> ShmFabric::GetListener() {
  if (!IsRingSize(options_.ring_bytes)) {
    return absl::InvalidArgumentError(
        "the ring's size is no power of two from 128 KiB to 16 MiB");
  }
  absl::Status kernel = CheckKernel();
  if (!kernel.ok()) return kernel;
  std::lock_guard<std::mutex> lock(mu_);
  if (listener_ != nullptr && listener_->IsForeign()) {
    // The parent's; its lock may be held by a thread that is not here.
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
  absl::StatusOr<std::shared_ptr<Listener>> listener = GetListener();
  absl::Status expected =
      listener.ok() ? (*listener)->Expect(attempt) : listener.status();
  if (!expected.ok()) {
    FinishLater(attempt, expected);
    return absl::make_unique<AttemptHandle>(attempt, nullptr);
  }
  std::weak_ptr<Listener> weak = *listener;
  std::weak_ptr<Attempt> weak_attempt = attempt;
  return absl::make_unique<AttemptHandle>(attempt, [weak, weak_attempt] {
    std::shared_ptr<Listener> self = weak.lock();
    std::shared_ptr<Attempt> cancelled = weak_attempt.lock();
    if (self != nullptr && cancelled != nullptr) self->Forget(*cancelled);
  });
}

std::unique_ptr<PendingConnect> ShmFabric::Connect(absl::string_view offer,
                                                   absl::string_view token,
                                                   ConnectCallback done) {
  auto attempt = std::make_shared<Attempt>(std::string(token), std::move(done));
  absl::StatusOr<SocketAddress> address = AddressIn(offer, options_.directory);
  if (address.ok() && (token.empty() || token.size() > kMaxTokenBytes)) {
    address = absl::InvalidArgumentError("a token has 1 to 64 bytes");
  }
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!address.ok() || !loop.ok()) {
    FinishLater(attempt, address.ok() ? loop.status() : address.status());
    return absl::make_unique<AttemptHandle>(attempt, nullptr);
  }
  std::shared_ptr<Connector> connector =
      Connector::Create(options_, *loop, attempt);
  (*loop)->Post(
      [connector, where = *address] { connector->StartOnLoop(where); });
  std::weak_ptr<Connector> weak = connector;
  progress::EventLoop* const where = *loop;
  return absl::make_unique<AttemptHandle>(attempt, [weak, where] {
    where->Post([weak] {
      if (std::shared_ptr<Connector> late = weak.lock()) late->StopOnLoop();
    });
  });
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
