// Restores a server's rows from a checkpoint.

#ifndef PENSTOCK_PS_CHECKPOINT_RESTORE_H_
#define PENSTOCK_PS_CHECKPOINT_RESTORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ps/checkpoint/chain.h"
#include "ps/checkpoint/files.h"
#include "ps/checkpoint/model.h"
#include "ps/checkpoint/records.h"
#include "ps/checkpoint/verify.h"

namespace penstock::ps::checkpoint {

// Describes which rows a server needs. The placement may differ from the
// checkpoint's placement. Tables are indices into the server's model.
struct Wanted {
  struct Rows {
    size_t table = 0;
    uint64_t first_row = 0;
    uint64_t rows = 0;
  };
  // The wanted dense rows. Lists no row twice.
  std::vector<Rows> rows;
  // A function that returns true if this server holds the sparse row of an id.
  // Null if the server holds no sparse row.
  std::function<bool(size_t table, uint64_t id)> holds;
  // By table: the digest of its placement, as in Manifest::placements. Empty if
  // unknown. If a checkpoint has the same digest, only its shard `shard` has
  // rows that this server holds, so the other shards are not read.
  std::vector<uint64_t> placements;
  size_t shard = 0;
  // If true, ignores tables of the checkpoint that the model lacks.
  bool may_drop_tables = false;
};

// Consecutive elements of one stream of a dense table. `first` counts the
// elements of the whole table. `step` is the step of the elements' part.
struct DenseElements {
  size_t table = 0;
  size_t stream = 0;
  uint64_t first = 0;
  uint64_t step = 0;
  absl::string_view bytes;
};

// Receives restored rows. Restore() stops at an error of the sink, and returns
// that error.
class Sink {
 public:
  virtual ~Sink() = default;
  // Receives dense elements. Each wanted element comes once. The bytes are
  // valid only during the call.
  virtual absl::Status TakeDense(const DenseElements& elements) = 0;
  // Receives a sparse table's step in one shard. The table's step is the
  // highest of all shards. Called for each table and shard of the checkpoint,
  // before any row, even for shards that are not read.
  virtual absl::Status TakeSparseStep(size_t table, uint64_t step) = 0;
  // Take or drop a row. Later calls for an id replace earlier calls: rows come
  // from the full checkpoint first, then from each incremental checkpoint.
  virtual absl::Status TakeRow(size_t table, const SparseRow& row) = 0;
  virtual absl::Status DropRow(size_t table, uint64_t id) = 0;
};

// Reads the wanted rows of `chain`, which OpenChain() or FindLastGood()
// returned. Reads dense rows from the newest checkpoint that has them, in whole
// blocks. Takes time proportional to the wanted rows. Holds one block at a
// time.
//
// Restores nothing for tables that the checkpoint lacks: such tables are new;
// see NotIn().
//
// Returns:
// - FAILED_PRECONDITION, which names the first different table, if a table
//   differs from the checkpoint's table;
// - FAILED_PRECONDITION if `model` lacks a table of the checkpoint, unless
//   Wanted::may_drop_tables is set;
// - INVALID_ARGUMENT if wanted rows are not in the model;
// - DATA_LOSS for damage. The sink never gets damaged bytes.
//
// The clocks are in `chain`, and are not restored here.
absl::Status Restore(Files* files, const Chain& chain, const Model& model,
                     const Wanted& wanted, Sink* sink,
                     const Progress& progress = nullptr);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_RESTORE_H_
