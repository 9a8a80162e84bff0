#include "examples/digits/evaluator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ps/client/training_connection.h"

namespace penstock::digits {
namespace {

// Limits a pull of variables that exist already.
constexpr absl::Duration kTransferTimeout = absl::Seconds(60);
// The pause between two queries if the servers do not let a reader wait for a
// step, as in an asynchronous training.
constexpr absl::Duration kPollInterval = absl::Milliseconds(50);

struct Progress {
  uint64_t steps = UINT64_MAX;  // of the fastest worker, at the slowest server
  uint32_t live_workers = 0;
};

absl::StatusOr<Progress> ProgressOf(const ps::TrainingConnection& connection,
                                    absl::Duration patience) {
  Progress progress;
  for (const auto& channel : connection.channels()) {
    auto report = ps::Describe(channel, patience);
    if (!report.ok()) return report.status();
    uint64_t steps = 0;
    for (const auto& worker : report->workers()) {
      steps = std::max<uint64_t>(steps, worker.clock());
    }
    progress.steps = std::min(progress.steps, steps);
    progress.live_workers =
        std::max(progress.live_workers, report->live_workers());
  }
  return progress;
}

void WaitFor(uint64_t step, absl::Duration interval, ps::Reader* reader) {
  const absl::Time start = absl::Now();
  ps::PullSpec nothing;
  nothing.all_dense = false;
  // Wait for the step. Ignore an error, because the next query of the servers
  // reports it again.
  (void)reader->Pull(step, nothing, interval);
  const absl::Duration left =
      std::min(interval, kPollInterval) - (absl::Now() - start);
  if (left > absl::ZeroDuration()) absl::SleepFor(left);
}

}  // namespace

absl::Status Evaluate(const EvaluatorOptions& options, ps::Reader* reader,
                      const EvaluateFn& evaluate) {
  uint64_t next = std::min(options.every, options.steps);
  uint64_t seen = 0;  // the highest number of steps so far
  absl::Time progress_at = absl::Now();
  while (true) {
    auto progress = ProgressOf(reader->connection(), options.patience);
    if (!progress.ok()) return progress.status();
    if (progress->steps > seen) {
      seen = progress->steps;
      progress_at = absl::Now();
    }
    const bool ended = progress->live_workers == 0;
    if (!ended && absl::Now() - progress_at > options.patience) {
      return absl::DeadlineExceededError(
          absl::StrCat("evaluate: the training hangs at step ", seen));
    }
    if (!ended && progress->steps < next) {
      WaitFor(next, options.check_interval, reader);
      continue;
    }
    // Evaluate once more after the end. A worker that has left may have made a
    // last step since the last evaluation.
    auto pulled = reader->Pull(ended ? 0 : next, {}, kTransferTimeout);
    if (!pulled.ok()) return pulled.status();
    const uint64_t steps =
        std::max(pulled->clock(), ended ? progress->steps : next);
    absl::Status status = evaluate(steps, pulled->AllDense());
    if (!status.ok()) return status;
    if (ended || steps >= options.steps) return absl::OkStatus();
    next = std::min(steps + options.every, options.steps);
  }
}

}  // namespace penstock::digits
