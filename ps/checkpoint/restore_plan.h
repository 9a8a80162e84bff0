// Plans a restore of dense tables: which file has which of the rows that a
// server needs.

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

// Identifies a part of the chain by link, shard, and index in the footer.
using PartKey = std::tuple<size_t, size_t, size_t>;

// The rows to read from each part, in ascending order.
using DensePlan = std::map<PartKey, std::vector<RowSpan>>;

// Plans to read each row from the newest checkpoint that has the row. `wanted`
// has indices into the chain's model. Returns INVALID_ARGUMENT if a row does
// not exist or is wanted twice, and DATA_LOSS if a row is in no part.
absl::StatusOr<DensePlan> PlanDense(const Chain& chain,
                                    const std::vector<Wanted::Rows>& wanted);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_RESTORE_PLAN_H_
