// Decides where the dense rows that a server wants are read from.

#ifndef PENSTOCK_PS_CHECKPOINT_RESTORE_PLAN_H_
#define PENSTOCK_PS_CHECKPOINT_RESTORE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "ps/checkpoint/chain.h"
#include "ps/checkpoint/restore.h"

namespace penstock::ps::checkpoint {

struct RowSpan {
  uint64_t first = 0;
  uint64_t end = 0;
};

// Which part of the chain: link, shard, and its place in the footer.
using PartKey = std::tuple<size_t, size_t, size_t>;

// The rows that are read from each part, in their order.
using DensePlan = std::map<PartKey, std::vector<RowSpan>>;

// Takes each row from the newest checkpoint that has it. `wanted` has the
// tables of the chain's model. Returns INVALID_ARGUMENT for rows that no table
// has, or that are wanted twice, and DATA_LOSS for rows that are in no part.
absl::StatusOr<DensePlan> PlanDense(const Chain& chain,
                                    const std::vector<Wanted::Rows>& wanted);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_RESTORE_PLAN_H_
