// The records in a checkpoint: rows of tables and clocks of workers.

#ifndef PENSTOCK_PS_CHECKPOINT_RECORDS_H_
#define PENSTOCK_PS_CHECKPOINT_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock::ps::checkpoint {

// Consecutive rows of a dense table that one server holds, with their slots.
// `table` is an index into the model; elements have the machine's own byte
// order, little-endian.
struct DensePart {
  size_t table = 0;
  uint64_t first_row = 0;
  uint64_t rows = 0;
  // The number of optimizer updates of this part.
  uint64_t step = 0;
  // The bytes of whole rows, one entry for each stream of the table.
  std::vector<absl::string_view> streams;
};

// A row of a sparse table. `bytes` are the concatenated value and slots.
struct SparseRow {
  uint64_t id = 0;
  uint64_t last_use = 0;  // in the evicting server's unit
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
