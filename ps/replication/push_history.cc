#include "ps/replication/push_history.h"

namespace penstock::ps::replication {

PushHistory::Judgement PushHistory::Judge(const WorkerPush& push) const {
  if (push.worker.rank >= kMaxRanks || push.clock >= kMaxClock) {
    return {Verdict::kInvalid};
  }
  const auto found = ranks_.find(push.worker.rank);
  if (found == ranks_.end()) return {Verdict::kNotJoined};
  const Rank& rank = found->second;
  if (rank.previous == push.worker.incarnation) return {Verdict::kSuperseded};
  if (rank.incarnation != push.worker.incarnation) {
    return {Verdict::kNotJoined};
  }
  if (push.clock >= rank.clock) return {Verdict::kNew};
  const bool is_last = push.clock + 1 == rank.clock && rank.pushed != 0 &&
                       rank.pusher == push.worker.incarnation;
  if (is_last) return {Verdict::kRepeated, rank.pushed};
  return {Verdict::kPassed};
}

PushHistory::Judgement PushHistory::JudgeJoin(const WorkerId& worker) const {
  if (worker.rank >= kMaxRanks) return {Verdict::kInvalid};
  const auto found = ranks_.find(worker.rank);
  if (found == ranks_.end()) return {Verdict::kNew};
  const Rank& rank = found->second;
  if (rank.incarnation == worker.incarnation) {
    return {Verdict::kRepeated, rank.joined};
  }
  if (rank.previous == worker.incarnation) return {Verdict::kSuperseded};
  return {Verdict::kNew};
}

void PushHistory::Record(const Entry& entry) {
  if (entry.joins.has_value()) RecordJoin(*entry.joins, entry.seq);
  for (const WorkerPush& push : entry.pushes) {
    Rank& rank = ranks_[push.worker.rank];
    rank.clock = push.clock + 1;
    rank.pusher = push.worker.incarnation;
    rank.pushed = entry.seq;
  }
}

void PushHistory::RecordJoin(const WorkerId& worker, uint64_t seq) {
  const bool is_known = ranks_.count(worker.rank) > 0;
  Rank& rank = ranks_[worker.rank];
  if (is_known) rank.previous = rank.incarnation;
  rank.incarnation = worker.incarnation;
  rank.joined = seq;
}

absl::optional<RankClock> PushHistory::ClockOf(uint32_t rank) const {
  const auto found = ranks_.find(rank);
  if (found == ranks_.end()) return absl::nullopt;
  return RankClock{{rank, found->second.incarnation}, found->second.clock};
}

}  // namespace penstock::ps::replication
