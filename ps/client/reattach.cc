#include "ps/client/reattach.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ps/client/define.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

constexpr absl::Duration kFirstWait = absl::Milliseconds(50);
constexpr absl::Duration kLongestWait = absl::Seconds(1);
// The number of consecutive equal errors after which the error counts as
// permanent. A single error may come from a server that was lost during an
// attempt.
constexpr int kMostEqual = 3;

// Returns true if another attempt may succeed.
bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status) ||
         absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status);
}

// Blocks for `wait`, by the steady clock.
void Pause(absl::Duration wait) {
  absl::Mutex mu;
  base::SteadyCondVar never;
  const absl::Time until = base::SteadyNow() + wait;
  absl::MutexLock lock(&mu);
  while (base::SteadyNow() < until) never.WaitUntil(&mu, until);
}

// The attempts to attach one worker again after a loss.
class Attempts {
 public:
  Attempts(const Worker::Options& before, const absl::Status& error)
      : before_(before),
        error_(error),
        deadline_(base::SteadyNow() + before.pull_timeout) {}

  absl::StatusOr<std::unique_ptr<Worker>> Run() {
    absl::Duration wait = kFirstWait;
    while (true) {
      auto worker = Attempt();
      if (worker.ok() || !is_lost_) return worker;
      const absl::Status& status = worker.status();
      equal_ = status.code() == last_.code() ? equal_ + 1 : 1;
      last_ = status;
      if (base::SteadyNow() + wait >= deadline_) return TooLate();
      if (!IsTransient(status) && equal_ >= kMostEqual) return Lost();
      Pause(wait);
      wait = std::min(wait * 2, kLongestWait);
    }
  }

 private:
  absl::StatusOr<std::unique_ptr<Worker>> Attempt() {
    const TrainingConnection& connection = *before_.connection;
    Definition definition;
    definition.servers = connection.channels();
    definition.addresses = connection.placement().servers();
    definition.model = connection.model();
    definition.timeout = deadline_ - base::SteadyNow();
    definition.continues = connection.begun();
    auto defined = Define(definition);
    if (!defined.ok()) return defined.status();
    is_lost_ = defined->connection->run() != connection.run();
    if (!is_lost_) return error_;
    if (defined->wants_values) {
      return absl::DataLossError("the servers have no values");
    }
    Worker::Options options = before_;
    options.connection = defined->connection;
    options.join_timeout =
        std::min(before_.join_timeout, deadline_ - base::SteadyNow());
    auto worker = Worker::Join(std::move(options));
    // Stop if a later process of this rank has joined.
    if (absl::IsAborted(worker.status())) {
      return absl::FailedPreconditionError(worker.status().message());
    }
    return worker;
  }

  absl::Status TooLate() const {
    return absl::DeadlineExceededError(
        absl::StrCat("attach again: the servers did not come back in time: ",
                     last_.message(), "; the worker had: ", error_.message()));
  }
  absl::Status Lost() const {
    return absl::DataLossError(absl::StrCat("attach again: ", last_.message()));
  }

  const Worker::Options& before_;
  const absl::Status& error_;
  const absl::Time deadline_;
  bool is_lost_ = true;  // false if the servers still have the old run
  absl::Status last_;
  int equal_ = 0;  // number of consecutive attempts with the code of last_
};

}  // namespace

absl::StatusOr<std::unique_ptr<Worker>> Reattach(const Worker::Options& before,
                                                 const absl::Status& error) {
  if (!absl::IsDataLoss(error) && !absl::IsAborted(error)) return error;
  return Attempts(before, error).Run();
}

}  // namespace penstock::ps
