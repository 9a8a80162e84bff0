// What goes into a checkpoint and comes out, beside its model.

#ifndef PENSTOCK_PS_CHECKPOINT_RECORDS_H_
#define PENSTOCK_PS_CHECKPOINT_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock::ps::checkpoint {

// Rows of a dense table that one server holds, with their slots. `table` is an
// index into the model; elements are the machine's own, little-endian.
struct DensePart {
  size_t table = 0;
  uint64_t first_row = 0;
  uint64_t rows = 0;
  // How often the optimizer has been applied to it.
  uint64_t step = 0;
  // One for each stream of the table, of whole rows.
  std::vector<absl::string_view> streams;
};

// `bytes` are the value and the slots, one behind the other.
struct SparseRow {
  uint64_t id = 0;
  uint64_t last_use = 0;  // in the unit of whoever evicts
  uint64_t count = 0;     // of uses
  absl::string_view bytes;
};

struct WorkerClock {
  uint32_t rank = 0;
  uint64_t incarnation = 0;
  uint64_t clock = 0;
};

inline bool operator==(const WorkerClock& a, const WorkerClock& b) {
  return a.rank == b.rank && a.incarnation == b.incarnation &&
         a.clock == b.clock;
}

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_RECORDS_H_
