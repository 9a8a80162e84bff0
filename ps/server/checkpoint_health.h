// Records whether checkpoints succeed, for operators.

#ifndef PENSTOCK_PS_SERVER_CHECKPOINT_HEALTH_H_
#define PENSTOCK_PS_SERVER_CHECKPOINT_HEALTH_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ps/checkpoint/retention.h"
#include "ps/server/report.h"

namespace penstock::ps {

// The outcomes of a training's checkpoints, kept by server 0. Times are by one
// monotonic clock. Thread-safe; no call blocks on a disk.
class CheckpointHealth {
 public:
  // Records a committed checkpoint.
  void Succeeded(uint64_t step, absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);
  // Records the contents of the checkpoint folder.
  void SetHeld(const checkpoint::Held& held) ABSL_LOCKS_EXCLUDED(mu_);
  // Records a failed checkpoint. Returns a line for the operator, with the
  // reason and the age of the last good checkpoint.
  std::string Failed(absl::string_view why, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Sets the fields of `report` about the outcomes of checkpoints.
  void Report(absl::Time now, ServerReport* report) const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  uint64_t step_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Time time_ ABSL_GUARDED_BY(mu_);  // of the commit of step_
  checkpoint::Held held_ ABSL_GUARDED_BY(mu_);
  uint64_t failures_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t failures_since_ ABSL_GUARDED_BY(mu_) = 0;  // the last good one
  std::string failure_ ABSL_GUARDED_BY(mu_);          // the last one
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CHECKPOINT_HEALTH_H_
