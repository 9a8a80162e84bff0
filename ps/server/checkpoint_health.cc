#include "ps/server/checkpoint_health.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "transport/base/printable.h"

namespace penstock::ps {
namespace {

// Limits the reason of a failure in logs and reports. The reason may come from
// a caller.
constexpr size_t kMaxReasonBytes = 1000;

}  // namespace

void CheckpointHealth::Succeeded(uint64_t step, absl::Time now) {
  absl::MutexLock lock(&mu_);
  step_ = step;
  time_ = now;
  failures_since_ = 0;
  failure_.clear();
}

void CheckpointHealth::SetHeld(const checkpoint::Held& held) {
  absl::MutexLock lock(&mu_);
  held_ = held;
}

std::string CheckpointHealth::Failed(absl::string_view why, absl::Time now) {
  absl::MutexLock lock(&mu_);
  ++failures_;
  ++failures_since_;
  failure_ =
      base::Printable(absl::StripPrefix(why, "checkpoint: "), kMaxReasonBytes);
  return absl::StrCat(
      "checkpoint: failed, ", failures_since_, " in a row: ", failure_, "; ",
      step_ == 0 ? "this process has committed none"
                 : absl::StrCat("the last good one is of step ", step_, ", ",
                                absl::FormatDuration(
                                    absl::Trunc(now - time_, absl::Seconds(1))),
                                " ago"));
}

void CheckpointHealth::Report(absl::Time now, ServerReport* report) const {
  absl::MutexLock lock(&mu_);
  report->last_checkpoint_step = step_;
  if (step_ > 0) report->last_checkpoint_age = now - time_;
  report->checkpoints = held_.checkpoints;
  report->checkpoints_bytes = held_.bytes;
  report->aside_checkpoints = held_.aside;
  report->aside_checkpoints_bytes = held_.aside_bytes;
  report->checkpoint_failures = failures_;
  report->checkpoint_failures_since = failures_since_;
  report->checkpoint_failure = failure_;
}

}  // namespace penstock::ps
