#include "ps/server/checkpoint_clocks.h"

#include <algorithm>
#include <map>

#include "absl/time/time.h"
#include "ps/consistency/progress.h"

namespace penstock::ps {

CheckpointClocks ToRecords(const std::vector<RankClock>& clocks) {
  CheckpointClocks records;
  records.reserve(clocks.size());
  for (const RankClock& each : clocks) {
    records.push_back({each.worker.rank, each.worker.incarnation, each.clock});
  }
  return records;
}

uint64_t BegunClock(const Exchange& exchange) {
  uint64_t highest = 0;
  const auto look = [&highest](const Coordinator& all) {
    for (const auto& clocks : {all.AppliedClocks(), BegunBy(all).begun}) {
      for (const RankClock& each : clocks) {
        highest = std::max(highest, each.clock);
      }
    }
    return true;
  };
  exchange.Await(look, absl::ZeroDuration());
  return highest;
}

bool HasAll(const CheckpointClocks& cut, const CheckpointClocks& clocks) {
  std::map<uint32_t, uint64_t> by_rank;
  for (const checkpoint::WorkerClock& each : cut)
    by_rank[each.rank] = each.clock;
  return std::all_of(clocks.begin(), clocks.end(),
                     [&](const checkpoint::WorkerClock& each) {
                       return each.clock <= by_rank[each.rank];
                     });
}

}  // namespace penstock::ps
