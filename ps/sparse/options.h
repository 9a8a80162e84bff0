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

// The action if a push needs a row above the budget. The values match
// ps/model/model.proto.
enum class AboveBudget {
  kRefuse,  // refuse the whole push with RESOURCE_EXHAUSTED
  kEvict,   // drop the least recently used rows
  kSpill,   // move them to the tier; refuse if the tier is full
};

struct Options {
  std::string name;                  // of the table
  size_t dim = 0;                    // floats of a value
  std::vector<float> initial_slots;  // first value of each slot's elements
  Initial initial;
  uint64_t seed = 0;  // of initial values
  // The seed of the hash of ids. The seed is secret: draw a random number.
  uint64_t hash_seed = 0;

  // The number of shards, a power of two. Threads contend per shard. More
  // shards also shorten each pause in which an index doubles.
  size_t shards = 64;

  // True to let Pull() create rows for ids without one.
  bool store_on_pull = false;
  // The number of pushes that an id needs to get a row; see Admission.
  uint32_t min_count = 1;
  // Limits how many ids without rows have counters of 16 bytes. In a pool,
  // their share of the pool is a limit, too. Their memory grows with use.
  size_t candidates = 1 << 20;

  // The time after which an unused row is removed. Rows keep their order of use
  // if this or max_rows is set, or with kEvict.
  absl::Duration time_to_live = absl::InfiniteDuration();  // whole seconds
  size_t max_rows = 0;                                     // 0: any number

  // Caps the bytes of rows, index, candidates and removals. With a tier, also
  // counts one row buffer per shard. 0: no cap. The cap and max_rows are
  // divided among the shards. The hash spreads ids almost evenly, so a table
  // holds a few percent less than the cap. A very small table holds up to a
  // third less.
  size_t budget_bytes = 0;
  // The shared limit of several tables, or null. Used only without
  // budget_bytes. Above the limit, the table refuses pushes. Must outlive the
  // table.
  Pool* pool = nullptr;
  AboveBudget above_budget = AboveBudget::kRefuse;
  // The storage for rows beyond budget_bytes, or null. No other table may use
  // it. Must be empty at first, and outlive the table.
  // kSpill requires a tier and budget_bytes, and excludes max_rows. The other
  // actions exclude a tier.
  Tier* tier = nullptr;

  // Limits how many removed ids are kept for incremental snapshots, with 16
  // bytes each. In a pool, their share of the pool is a limit, too.
  size_t max_removals = 1 << 20;

  // The source of memory, which must outlive the table.
  Memory* memory = SystemMemory();

  size_t slots() const { return initial_slots.size(); }
  bool KeepsOrder() const {
    return time_to_live < absl::InfiniteDuration() || max_rows > 0 ||
           (budget_bytes > 0 && above_budget != AboveBudget::kRefuse);
  }
};

// Returns OK for possible options, and INVALID_ARGUMENT, which names the field,
// otherwise. Does not require the tier.
absl::Status Validate(const Options& options);

// Returns the smallest possible budget_bytes.
size_t LeastBudget(const Options& options);

// Returns the bytes of a shard's budget that candidates, removals and the row
// buffer of the tier take.
size_t FixedBytesOfShard(const Options& options);

// Returns RESOURCE_EXHAUSTED, with the table's name.
absl::Status Exhausted(const Options& options, const std::string& why);

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_OPTIONS_H_
