#include "ps/server/checkpoint_turn.h"

namespace penstock::ps {

bool CheckpointTurn::Begin(uint64_t id, absl::Time now) {
  absl::MutexLock lock(&mu_);
  if (IsTakenLocked(now)) return false;
  id_ = id;
  lease_ends_ = now + lease_;
  return true;
}

bool CheckpointTurn::Renew(uint64_t id, absl::Time now) {
  absl::MutexLock lock(&mu_);
  if (id_ != id) return false;
  lease_ends_ = now + lease_;
  return true;
}

bool CheckpointTurn::End(uint64_t id) {
  absl::MutexLock lock(&mu_);
  if (id_ != id) return false;
  id_.reset();
  return true;
}

bool CheckpointTurn::HasEnded() const {
  absl::MutexLock lock(&mu_);
  return !id_.has_value();
}

bool CheckpointTurn::IsTaken(absl::Time now) const {
  absl::MutexLock lock(&mu_);
  return IsTakenLocked(now);
}

}  // namespace penstock::ps
