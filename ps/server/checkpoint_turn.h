// Lets one caller at a time write a checkpoint.

#ifndef PENSTOCK_PS_SERVER_CHECKPOINT_TURN_H_
#define PENSTOCK_PS_SERVER_CHECKPOINT_TURN_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace penstock::ps {

// A lease of server 0 for the caller that writes a checkpoint. Other callers
// wait until the turn ends. If a caller dies or loses its connection, its turn
// ends when the lease expires. Times are by one monotonic clock. Thread-safe.
//
//   state  event         guard          next
//   -----  ------------  -------------  -----
//   free   Begin                        taken
//   taken  Begin         lease is over  taken, by the new caller
//   taken  Renew, End    of its caller  taken, free
//
// Renew and End of another caller change nothing.
class CheckpointTurn {
 public:
  explicit CheckpointTurn(absl::Duration lease) : lease_(lease) {}

  // Takes the turn for attempt `id`. Returns false if another caller has it.
  bool Begin(uint64_t id, absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);
  // Renews the lease. Returns false if `id` does not have the turn.
  bool Renew(uint64_t id, absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the turn. Returns false if `id` does not have the turn.
  bool End(uint64_t id) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns true if no caller has the turn. An expired lease still counts as a
  // turn.
  bool HasEnded() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns true if a caller has the turn and its lease has not expired.
  bool IsTaken(absl::Time now) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  bool IsTakenLocked(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return id_.has_value() && now < lease_ends_;
  }

  const absl::Duration lease_;
  mutable absl::Mutex mu_;
  absl::optional<uint64_t> id_ ABSL_GUARDED_BY(mu_);
  absl::Time lease_ends_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CHECKPOINT_TURN_H_
