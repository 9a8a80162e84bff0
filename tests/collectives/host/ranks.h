// The ranks of a group as threads of a test.

#ifndef PENSTOCK_TESTS_COLLECTIVES_HOST_RANKS_H_
#define PENSTOCK_TESTS_COLLECTIVES_HOST_RANKS_H_

#include <functional>

#include "collectives/host/group.h"

namespace penstock::collectives {

// Forms a group and calls `run` for each rank on its own thread. A rank leaves
// when its call of `run` returns. Returns when all calls have returned.
void RunRanks(const HostGroupOptions& options,
              const std::function<void(HostGroup* group)>& run);
// Like RunRanks(), with options for each rank.
void RunRanksWith(int ranks,
                  const std::function<HostGroupOptions(int rank)>& options,
                  const std::function<void(HostGroup* group)>& run);

}  // namespace penstock::collectives

#endif  // PENSTOCK_TESTS_COLLECTIVES_HOST_RANKS_H_
