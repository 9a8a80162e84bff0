#include "ps/shards/shard_cuts.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "ps/consistency/progress.h"
#include "ps/server/cut_snapshots.h"
#include "ps/shards/boot_time.h"
#include "ps/shards/entry.h"

namespace penstock::ps {
namespace {

// The interval at which a wait checks if its result is still possible.
constexpr absl::Duration kLook = absl::Milliseconds(20);

}  // namespace

ShardCuts::ShardCuts(std::shared_ptr<ReplicaState> state)
    : state_(std::move(state)) {}

absl::Status ShardCuts::CheckCut(const Hold& hold, const CutPoint& cut) {
  const Model& model = hold.server->training()->tables->model().model();
  absl::Status status;
  hold.exchange->Await(
      [&](const Coordinator& server) {
        status = server.CheckCut(cut, HasSynchronousTable(model));
        return true;
      },
      absl::ZeroDuration());
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("checkpoint: ", status.message()));
}

absl::StatusOr<ShardCuts::Hold> ShardCuts::Begin(const View& view,
                                                 const CutPoint* cut,
                                                 absl::Time deadline) {
  base::SteadyMutexLock lock(&state_->mu);
  if (state_->primary() == nullptr) return state_->NotPrimary();
  Hold hold;
  hold.server = state_->server;
  auto exchange = hold.server->Serving(view);
  if (!exchange.ok()) return exchange.status();
  hold.exchange = *std::move(exchange);
  if (cut != nullptr) {
    absl::Status possible = CheckCut(hold, *cut);
    if (!possible.ok()) return possible;
  }
  hold.reign = state_->reign;
  hold.number = cut == nullptr
                    ? state_->gate.Close(BootNow() + CutSnapshots::kHoldLimit)
                    : state_->gate.OpenUpTo(*cut, deadline);
  hold.logged = state_->replica.holdings().log.last();
  hold.deadline = deadline;
  state_->wants_pump = true;
  return hold;
}

void ShardCuts::End(const Hold& hold) {
  base::SteadyMutexLock lock(&state_->mu);
  state_->gate.Open(hold.number);
  state_->wants_pump = true;
}

void ShardCuts::ReleaseSteps() {
  base::SteadyMutexLock lock(&state_->mu);
  if (state_->gate.cut() != nullptr) return;  // a snapshot waits
  state_->gate.Open(state_->gate.hold());
  state_->wants_pump = true;
}

absl::Status ShardCuts::CheckLocked(const Hold& hold) {
  if (state_->primary() == nullptr || state_->reign != hold.reign) {
    return state_->NotPrimary();
  }
  if (!state_->gate.IsPresent(hold.number)) {
    return absl::AbortedError("checkpoint: another one has been begun");
  }
  if (hold.cancellation != nullptr && hold.cancellation->is_cancelled()) {
    return absl::CancelledError("the caller has cancelled");
  }
  if (BootNow() >= hold.deadline) {
    return absl::DeadlineExceededError(
        "checkpoint: the shard has not reached the cut in time");
  }
  return hold.exchange->failure();
}

absl::Status ShardCuts::AwaitFed(const Hold& hold, uint64_t seq) {
  base::SteadyMutexLock lock(&state_->mu);
  const auto is_fed = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu) {
    return state_->fed.last() >= seq;
  };
  absl::Status status = CheckLocked(hold);
  while (status.ok() && !state_->mu.AwaitFor(kLook, is_fed)) {
    status = CheckLocked(hold);
  }
  return status;
}

absl::StatusOr<HeldSteps> ShardCuts::HoldSteps(const View& view) {
  const absl::Time deadline = BootNow() + CutSnapshots::kHoldLimit;
  const auto hold = Begin(view, nullptr, deadline);
  if (!hold.ok()) return hold.status();
  absl::Status status = AwaitFed(*hold, hold->logged);
  HeldSteps held;
  const auto is_quiet = [&held](const Coordinator& server) {
    held = BegunBy(server);
    return IsQuiet(server);
  };
  if (status.ok() && !hold->exchange->Await(is_quiet, deadline - BootNow())) {
    status = absl::DeadlineExceededError(
        "checkpoint: the shard does not apply its pushes in time");
  }
  if (status.ok()) status = hold->exchange->failure();
  if (status.ok()) return held;
  End(*hold);
  return status;
}

absl::Status ShardCuts::AwaitCut(const Hold& hold, const CutPoint& cut) {
  bool is_past = false;
  const auto is_over = [&](const Coordinator& server) {
    is_past = IsPast(cut, server);
    return is_past || IsAt(cut, server);
  };
  while (!hold.exchange->Await(is_over, kLook)) {
    base::SteadyMutexLock lock(&state_->mu);
    absl::Status status = CheckLocked(hold);
    if (!status.ok()) return status;
  }
  if (!is_past) return hold.exchange->failure();
  return absl::OutOfRangeError(absl::StrCat(
      "the server is past ", Describe(cut), ": request a later one"));
}

absl::Status ShardCuts::Close(const Hold& hold, const CutPoint& cut) {
  uint64_t seq = 0;
  {
    base::SteadyMutexLock lock(&state_->mu);
    absl::Status status = CheckLocked(hold);
    if (!status.ok()) return status;
    const auto logged = state_->primary()->Accept(
        {}, std::make_shared<EventPayload>(cut), BootNow());
    if (!logged.ok()) return logged.status();
    seq = *logged;
    state_->wants_pump = true;
  }
  return AwaitFed(hold, seq);
}

absl::StatusOr<ModelSnapshot> ShardCuts::TakeSnapshot(
    const View& view, const CutPoint& cut, const SparseSnapshotOptions& options,
    absl::Duration timeout, Cancellation* cancellation) {
  auto hold = Begin(view, &cut, BootNow() + timeout);
  if (!hold.ok()) return hold.status();
  hold->cancellation = cancellation;
  const absl::Cleanup end = [&] { End(*hold); };
  // Wait for the pushes that were in the log before the hold, some of which may
  // be after the cut.
  absl::Status status = AwaitFed(*hold, hold->logged);
  if (status.ok()) status = AwaitCut(*hold, cut);
  if (status.ok()) status = Close(*hold, cut);
  if (!status.ok()) return status;
  return hold->server->TakeSnapshot(
      view, cut, options, hold->deadline - BootNow(), [&](uint64_t ticket) {
        if (cancellation == nullptr) return;
        cancellation->EndWaitWith(
            [server = hold->server, ticket] { server->Cancel(ticket); });
      });
}

}  // namespace penstock::ps
