#include "ps/server/push_room.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock::ps {

absl::Status PushRoom::Check(const WorkerId& worker, uint64_t clock,
                             size_t bytes, size_t pending_bytes,
                             const HeldGradients& held,
                             const Coordinator& coordinator) {
  if (!coordinator.membership().IsMember(worker)) return absl::OkStatus();
  if (bytes > max_bytes_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its gradients take ", bytes, " bytes, and the server may hold ",
        max_bytes_, ": push less in a step, or raise its --held-gradients"));
  }
  const size_t all = held.bytes() + pending_bytes;
  if (all <= max_bytes_ - bytes) return absl::OkStatus();
  steps_.resize(coordinator.policies());
  for (size_t at = 0; at < steps_.size(); ++at) {
    absl::Status status =
        CheckStep(at, {worker.rank, clock}, bytes, held, coordinator);
    if (!status.ok()) return status;
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "the server holds ", all, " bytes of gradients that are not applied, of ",
      max_bytes_, ": try again later, or raise its --held-gradients"));
}

bool PushRoom::NeverReaches(const CutPoint& cut, const PushId& push,
                            size_t bytes, size_t pending_behind,
                            const HeldGradients& held,
                            bool is_synchronous) const {
  if (push.clock >= cut.ClockOf(push.rank)) return false;
  const size_t kept = is_synchronous ? held.bytes() : held.BytesBehind(cut);
  return bytes + kept + pending_behind > max_bytes_;
}

absl::Status PushRoom::CheckStep(size_t at, const PushId& push, size_t bytes,
                                 const HeldGradients& held,
                                 const Coordinator& coordinator) {
  const Membership& members = coordinator.membership();
  const ConsistencyPolicy& policy = coordinator.policy(at);
  // Also checks pushes for an earlier step. Such a push is late for this
  // policy, but the worker has to make it before its push for this step.
  if (!policy.synchronous() || push.clock > policy.version()) {
    return absl::OkStatus();
  }
  size_t of_step = 0;
  size_t largest = bytes;
  for (const auto& [clock, rank] : policy.unapplied()) {
    const size_t each = held.BytesOf({rank, clock});
    of_step += each;
    largest = std::max(largest, each);
  }
  // Refuses only for the moment, because there will be room once other steps
  // have ended.
  if (of_step <= max_bytes_ - bytes) return absl::OkStatus();
  if (steps_[at].version != policy.version()) {
    steps_[at] = {policy.version(), {}};
  }
  steps_[at].ranks.insert(push.rank);
  if (!policy.WaitsFor(steps_[at].ranks, members)) return absl::OkStatus();
  const size_t workers = policy.unapplied().size() +
                         members.CountBelow(policy.version() + 1, kMaxRanks);
  return absl::AbortedError(absl::StrCat(
      "training has ended: step ", push.clock, " waits for worker ", push.rank,
      ", whose gradients take ", bytes, " bytes. The server holds ", of_step,
      " bytes of this step already, and may hold ", max_bytes_,
      ". Push less in a step, or restart the servers, from a checkpoint, "
      "with --held-gradients=",
      workers * largest, " or more, for ", workers, " workers"));
}

}  // namespace penstock::ps
