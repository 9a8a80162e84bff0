#include "examples/digits/evaluator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace penstock::digits {
namespace {

// The time limit of a transfer of variables that the servers have.
constexpr absl::Duration kTransferTimeout = absl::Seconds(60);

}  // namespace

absl::Status Evaluate(const EvaluatorOptions& options, ps::Reader* reader,
                      const EvaluateFn& evaluate) {
  uint64_t next = std::min(options.every, options.steps);
  uint64_t seen = 0;  // the newest version so far
  absl::Time progress_at = absl::Now();
  while (true) {
    auto progress = reader->Describe(options.patience);
    if (!progress.ok()) return progress.status();
    if (progress->version > seen) {
      seen = progress->version;
      progress_at = absl::Now();
    }
    bool ended = progress->initialized && progress->live_workers == 0;
    if (!ended && absl::Now() - progress_at > options.patience) {
      return absl::DeadlineExceededError(
          absl::StrCat("evaluate: the training hangs at version ", seen));
    }
    // A worker that has left may have made a last version since the last
    // evaluation.
    auto pulled = ended ? reader->Pull(0, kTransferTimeout)
                        : reader->Pull(next, options.check_interval);
    if (absl::IsDeadlineExceeded(pulled.status()) && !ended) continue;
    if (!pulled.ok()) return pulled.status();
    absl::Status status = evaluate(pulled->version, pulled->variables);
    if (!status.ok()) return status;
    if (ended || pulled->version >= options.steps) return absl::OkStatus();
    next = std::min(pulled->version + options.every, options.steps);
  }
}

}  // namespace penstock::digits
