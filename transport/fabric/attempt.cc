#include "transport/fabric/attempt.h"

namespace penstock {
namespace fabric {

ConnectCallback Attempt::Take() {
  std::lock_guard<std::mutex> lock(mu_);
  return std::exchange(done_, nullptr);
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

}  // namespace fabric
}  // namespace penstock
