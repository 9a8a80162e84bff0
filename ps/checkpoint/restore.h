// Gives servers what a checkpoint has of the rows that they hold.

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

// What one server holds, in however many parts, and of whatever placement: it
// need not be that of the checkpoint. Tables are indices into its own model.
struct Wanted {
  struct Rows {
    size_t table = 0;
    uint64_t first_row = 0;
    uint64_t rows = 0;
  };
  // Dense. None twice.
  std::vector<Rows> rows;
  // Sparse: whether this server holds the row of an id. Null: no row.
  std::function<bool(size_t table, uint64_t id)> holds;
  // Whether tables of the checkpoint are left out that the model does not have.
  bool may_drop_tables = false;
};

// Elements of a stream of a dense table, from the one of that number of the
// whole table on. `step` is that of the part they were in.
struct DenseElements {
  size_t table = 0;
  size_t stream = 0;
  uint64_t first = 0;
  uint64_t step = 0;
  absl::string_view bytes;
};

// Takes what is restored. An error ends the restore, which returns it.
class Sink {
 public:
  virtual ~Sink() = default;
  // Each element that is wanted comes once. Bytes are valid during the call.
  virtual absl::Status TakeDense(const DenseElements& elements) = 0;
  // A sparse table's step, of one shard: the table's is the highest of them.
  // Comes for each table of the checkpoint, before its rows.
  virtual absl::Status TakeSparseStep(size_t table, uint64_t step) = 0;
  // What comes later replaces what came before: rows come from the full
  // checkpoint first and then from each incremental one.
  virtual absl::Status TakeRow(size_t table, const SparseRow& row) = 0;
  virtual absl::Status DropRow(size_t table, uint64_t id) = 0;
};

// Reads what is wanted of `chain`, as OpenChain() or FindLastGood() returned
// it, in time and bytes as they are wanted: dense rows from the newest
// checkpoint that has them, and of them whole blocks only. Holds one block.
//
// Of tables that the checkpoint does not have, nothing comes: they are new; see
// NotIn().
//
// Returns FAILED_PRECONDITION if a table is another than the checkpoint's,
// naming the first that differs, and how, and if it has one that `model` has
// not, unless that may be dropped; INVALID_ARGUMENT if rows are
// wanted that are not in the model; DATA_LOSS if it finds damage, which the
// sink has seen nothing of. `chain` has the clocks.
absl::Status Restore(Files* files, const Chain& chain, const Model& model,
                     const Wanted& wanted, Sink* sink,
                     const Progress& progress = nullptr);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_RESTORE_H_
