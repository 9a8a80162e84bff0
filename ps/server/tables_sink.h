// Restores a checkpoint into the tables of a server.

#ifndef PENSTOCK_PS_SERVER_TABLES_SINK_H_
#define PENSTOCK_PS_SERVER_TABLES_SINK_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "ps/checkpoint/restore.h"
#include "ps/dense/dense_part.h"
#include "ps/server/tables.h"
#include "ps/sparse/row_block.h"

namespace penstock::ps {

// A sink that fills the tables of a server. Collects dense values until
// Finish(). Puts sparse rows into the tables in blocks.
class TablesSink final : public checkpoint::Sink {
 public:
  // Makes a sink. `is_new` has a value for each table of the model: true if the
  // checkpoint lacks the table.
  TablesSink(Tables* tables, std::vector<bool> is_new);

  // Allocates memory for the dense values.
  absl::Status Begin();
  checkpoint::Wanted Wanted() const;
  // Puts the collected values into the tables.
  absl::Status Finish();

  absl::Status TakeDense(const checkpoint::DenseElements& elements) override;
  absl::Status TakeSparseStep(size_t table, uint64_t step) override;
  absl::Status TakeRow(size_t table, const checkpoint::SparseRow& row) override;
  absl::Status DropRow(size_t table, uint64_t id) override;

  // The rows of one table that had no room.
  struct Lost {
    size_t rows;  // index of the table in LocalModel::rows()
    sparse::RestoreLoss loss;
  };
  // Returns the tables that lost rows. Call after Finish().
  const std::vector<Lost>& lost() const { return lost_; }
  // Return the numbers of received dense elements and sparse rows. A row counts
  // once for each checkpoint of the chain that contains it.
  uint64_t elements() const { return dense_elements_; }
  uint64_t rows() const { return rows_taken_; }

 private:
  // A placeholder for the index in LocalModel::rows(): the table is dense, or
  // has no ids on this server.
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  // A range of a table's elements that is contiguous in a part.
  struct Piece {
    uint64_t first;  // in the table
    uint64_t elements;
    size_t part;
    uint64_t first_in_part;
  };

  sparse::Table& table(size_t rows) { return tables_->table(rows); }
  // Returns the indices of a part's pieces that the checkpoint lacks.
  std::vector<size_t> NewPieces(size_t part) const;
  absl::Status PutRows();
  absl::Status TurnTo(size_t rows);

  Tables* const tables_;
  const std::vector<bool> is_new_;
  std::vector<std::vector<Piece>> pieces_;  // by table of the model
  std::vector<size_t> rows_of_;             // by table of the model
  std::vector<DensePart::Snapshot> parts_;  // by place in Tables::parts()
  size_t gathering_ = kNone;                // the table of the rows in block_
  sparse::RowBlock block_;
  std::vector<Lost> lost_;
  uint64_t dense_elements_ = 0;
  uint64_t rows_taken_ = 0;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_TABLES_SINK_H_
