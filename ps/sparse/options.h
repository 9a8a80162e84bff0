// What a sparse table is: its rows, and who may have one.

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

// What happens to a push that needs a row for which the budget has no room.
// As the numbers of ps/model/model.proto.
enum class AboveBudget {
  kRefuse,  // refused as a whole, with RESOURCE_EXHAUSTED and a time to wait
  kEvict,   // the rows that were not used for longest make room, and are lost
  kSpill,   // they move to the tier; refused if that has no room either
};

struct Options {
  std::string name;                  // of the table
  size_t dim = 0;                    // floats of a value
  std::vector<float> initial_slots;  // one for each slot: its elements' first
  Initial initial;
  uint64_t seed = 0;  // of initial values
  // Of the hash of ids. A secret: draw it at random.
  uint64_t hash_seed = 0;

  // A power of two. Threads wait for each other by shards; more of them also
  // make each pause shorter in which an index doubles.
  size_t shards = 64;

  // Whether Pull() makes rows of ids that have none.
  bool store_on_pull = false;
  // The push that makes an id's row: 1 the first. See Admission.
  uint32_t min_count = 1;
  size_t candidates = 1 << 20;  // ids whose pushes are counted; 16 bytes each

  // Each of these, and kEvict, has rows keep the order in which they were used.
  absl::Duration time_to_live = absl::InfiniteDuration();  // whole seconds
  size_t max_rows = 0;                                     // 0: any number

  // Bytes of rows, index, candidates and removals, and with a tier of a row
  // that each shard reads from there; 0: any number. It is divided among the
  // shards, and so is max_rows. The hash spreads ids so evenly that the table
  // holds a few percent less, or, of very small tables, a third.
  size_t budget_bytes = 0;
  // Without budget_bytes: what the table shares a limit with, if anything.
  // Above it the table refuses. Outlives it.
  Pool* pool = nullptr;
  AboveBudget above_budget = AboveBudget::kRefuse;
  // Of this table alone, empty, and outlives it. kSpill has one, and a budget,
  // and no max_rows; the others have none.
  Tier* tier = nullptr;
  // What a refused push is told to wait.
  absl::Duration retry_after = absl::Seconds(1);

  // Removed ids that are remembered for incremental snapshots; 16 bytes each.
  size_t max_removals = 1 << 20;

  // Outlives the table.
  Memory* memory = SystemMemory();

  size_t slots() const { return initial_slots.size(); }
  bool KeepsOrder() const {
    return time_to_live < absl::InfiniteDuration() || max_rows > 0 ||
           (budget_bytes > 0 && above_budget != AboveBudget::kRefuse);
  }
};

// Returns INVALID_ARGUMENT, with the field's name, for what cannot be. It does
// not ask for the tier.
absl::Status Validate(const Options& options);

// The smallest budget_bytes that a table can have.
size_t LeastBudget(const Options& options);

// What a shard takes of the budget for candidates and removals, and for the row
// that it reads from the tier.
size_t FixedBytesOfShard(const Options& options);

// How long to wait before a push is repeated that was refused with `status`;
// zero if that does not say.
absl::Duration RetryAfterOf(const absl::Status& status);
// Returns RESOURCE_EXHAUSTED that says so.
absl::Status Exhausted(const Options& options, const std::string& why);

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_OPTIONS_H_
