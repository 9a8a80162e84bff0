// What a server holds, at one point in time, and what it goes on from.

#ifndef PENSTOCK_PS_SERVER_MODEL_SNAPSHOT_H_
#define PENSTOCK_PS_SERVER_MODEL_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "ps/consistency/membership.h"
#include "ps/dense/dense_part.h"
#include "ps/server/tables.h"
#include "ps/sparse/snapshot.h"

namespace penstock::ps {

// By place in LocalModel::rows(); empty: all rows of all tables.
using SparseSnapshotOptions = std::vector<sparse::SnapshotOptions>;

// Destroy it before the tables, which it may be destroyed by any thread.
struct ModelSnapshot {
  struct Sparse {
    uint64_t steps = 0;
    std::unique_ptr<sparse::Snapshot> rows;
  };

  std::vector<DensePart::Snapshot> parts;  // by place in Tables::parts()
  std::vector<Sparse> tables;              // by place in LocalModel::rows()
  std::vector<RankClock> clocks;
};

// What a server begins with, beside the tables' values.
struct RestoredModel {
  uint64_t step = 0;  // of the checkpoint
  std::vector<RankClock> clocks;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_MODEL_SNAPSHOT_H_
