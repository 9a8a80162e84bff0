// Options of a sparse table.

#ifndef PENSTOCK_PS_SPARSE_OPTIONS_H_
#define PENSTOCK_PS_SPARSE_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ps/sparse/initial_value.h"
#include "ps/sparse/memory.h"
#include "ps/sparse/pool.h"
#include "ps/sparse/tier.h"

namespace penstock::ps::sparse {

// The action if a push needs a row above the budget. The numbers are those of
// ps/model/model.proto.
enum class AboveBudget {
  kRefuse,  // refuse the whole push with RESOURCE_EXHAUSTED
  kEvict,   // drop the least recently used rows
  kSpill,   // move them to the tier; refuse the push if the tier is full
};

struct Options {
  std::string name;                  // of the table
  size_t dim = 0;                    // floats of a value
  std::vector<float> initial_slots;  // first value of each slot's elements
  Initial initial;
  uint64_t seed = 0;  // of initial values
  // The secret seed of the hash of ids: draw a random number.
  uint64_t hash_seed = 0;

  // The number of shards, a power of two. Each shard has a lock. With more
  // shards, threads contend less, and each pause for the growth of an index is
  // shorter.
  size_t shards = 64;

  // True to let Pull() create rows for ids without one.
  bool store_on_pull = false;
  // The number of pushes that an id needs to get a row; see Admission.
  uint32_t min_count = 1;
  // Limits how many ids without rows are counted, with 16 bytes each. In a
  // pool, the pool's share for candidates is a further limit. The memory grows
  // with use.
  size_t candidates = 1 << 20;

  // The time after which an unused row is removed. Rows keep their order of use
  // if this time is finite, if max_rows is set, or with kEvict.
  absl::Duration time_to_live = absl::InfiniteDuration();  // whole seconds
  size_t max_rows = 0;                                     // 0: any number

  // Limits the bytes of rows, index, candidates and removals. With a tier, also
  // counts one row buffer per shard. 0: no limit. This limit and max_rows are
  // divided among the shards. The hash spreads ids almost evenly, so a table
  // has a few percent less than the limit; a very small table, up to a third
  // less.
  size_t budget_bytes = 0;
  // The shared limit of several tables, or null. Ignored if budget_bytes is
  // set. Above the limit, the table refuses pushes. Must outlive the table.
  Pool* pool = nullptr;
  AboveBudget above_budget = AboveBudget::kRefuse;
  // The storage for rows beyond budget_bytes, or null. Must belong to this
  // table alone, be empty at first, and outlive the table. kSpill requires a
  // tier and budget_bytes, and excludes max_rows. The other actions exclude a
  // tier.
  Tier* tier = nullptr;

  // Limits how many removed ids are stored for incremental snapshots, with 16
  // bytes each. In a pool, the pool's share for removals is a further limit.
  size_t max_removals = 1 << 20;

  // The allocator of memory, which must outlive the table.
  Memory* memory = SystemMemory();

  size_t slots() const { return initial_slots.size(); }
  bool KeepsOrder() const {
    return time_to_live < absl::InfiniteDuration() || max_rows > 0 ||
           (budget_bytes > 0 && above_budget != AboveBudget::kRefuse);
  }
};

// Returns OK if the options are possible. Otherwise returns INVALID_ARGUMENT,
// which names the field. Does not check that there is a tier.
absl::Status Validate(const Options& options);

// Returns the smallest possible budget_bytes.
size_t LeastBudget(const Options& options);

// Returns the part of a shard's budget, in bytes, for candidates, removals and
// the row buffer of the tier.
size_t FixedBytesOfShard(const Options& options);

// Returns RESOURCE_EXHAUSTED, with the table's name.
absl::Status Exhausted(const Options& options, const std::string& why);

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_OPTIONS_H_
