#include "transport/fabric/shm/attempt.h"

#include "transport/fabric/shm/endpoint.h"
#include "transport/fabric/shm/link.h"

namespace penstock {
namespace fabric {
namespace shm {

ConnectCallback Attempt::Take() {
  std::lock_guard<std::mutex> lock(mu_);
  ConnectCallback done = std::move(done_);
  done_ = nullptr;
  return done;
}

void Attempt::Finish(absl::StatusOr<std::unique_ptr<Endpoint>> result) {
  ConnectCallback done = Take();
  if (done) done(std::move(result));
}

bool Attempt::pending() const {
  std::lock_guard<std::mutex> lock(mu_);
  return static_cast<bool>(done_);
}

AttemptHandle::~AttemptHandle() {
  attempt_->Cancel();
  if (clean_up_) clean_up_();
}

absl::StatusOr<std::unique_ptr<Endpoint>> MakeEndpoint(base::UniqueFd socket,
                                                       Segment control,
                                                       PeerSegment peer_control,
                                                       Sharing sharing) {
  absl::StatusOr<std::shared_ptr<Link>> link =
      Link::Create(std::move(socket), std::move(control),
                   std::move(peer_control), std::move(sharing));
  if (!link.ok()) return link.status();
  return std::unique_ptr<Endpoint>(new ShmEndpoint(*link));
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
