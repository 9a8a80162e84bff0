// Puts a checkpoint into a server's tables.

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

// Gathers dense values until they are whole, and passes rows on.
class TablesSink final : public checkpoint::Sink {
 public:
  // `is_new` has the tables of the model that do not come.
  TablesSink(Tables* tables, std::vector<bool> is_new);

  // Makes room for the dense values.
  absl::Status Begin();
  checkpoint::Wanted Wanted() const;
  // Puts in what is gathered.
  absl::Status Finish();

  absl::Status TakeDense(const checkpoint::DenseElements& elements) override;
  absl::Status TakeSparseStep(size_t table, uint64_t step) override;
  absl::Status TakeRow(size_t table, const checkpoint::SparseRow& row) override;
  absl::Status DropRow(size_t table, uint64_t id) override;

  // How much has come; a row of each checkpoint of a chain that has it.
  uint64_t elements() const { return dense_elements_; }
  uint64_t rows() const { return rows_taken_; }

 private:
  // Tables of which this server has no ids, and dense ones.
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  // Elements of a table that are adjacent in a part.
  struct Piece {
    uint64_t first;  // in the table
    uint64_t elements;
    size_t part;
    uint64_t first_in_part;
  };

  sparse::Table& table(size_t rows) { return tables_->table(rows); }
  // Returns the pieces of a part that do not come.
  std::vector<size_t> NewPieces(size_t part) const;
  absl::Status PutRows();
  absl::Status TurnTo(size_t rows);

  Tables* const tables_;
  const std::vector<bool> is_new_;
  std::vector<std::vector<Piece>> pieces_;  // by table of the model
  std::vector<size_t> rows_of_;             // by table of the model
  std::vector<DensePart::Snapshot> parts_;  // by place in Tables::parts()
  // Rows of one table.
  size_t gathering_ = kNone;
  sparse::RowBlock block_;
  uint64_t dense_elements_ = 0;
  uint64_t rows_taken_ = 0;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_TABLES_SINK_H_
