#include "ps/server/tables_sink.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/server/checkpoint_model.h"

namespace penstock::ps {
namespace {

// Limits how many rows are put into a table in one call.
constexpr size_t kRowsAtOnce = 1024;

}  // namespace

TablesSink::TablesSink(Tables* tables, std::vector<bool> is_new)
    : tables_(tables),
      is_new_(std::move(is_new)),
      pieces_(tables->model().model().tables.size()),
      rows_of_(pieces_.size(), kNone) {
  const LocalModel& model = tables->model();
  for (size_t part = 0; part < tables->parts().size(); ++part) {
    for (const Part::Piece& piece : tables->parts()[part].pieces) {
      const LocalRange& range = model.ranges()[piece.range];
      uint64_t row = 1;
      for (size_t i = 1; i < range.shape.size(); ++i) {
        row *= static_cast<uint64_t>(range.shape[i]);
      }
      pieces_[range.table].push_back(
          {range.first_row * row, piece.elements, part, piece.first});
    }
  }
  for (size_t i = 0; i < model.rows().size(); ++i) {
    rows_of_[model.rows()[i].table] = i;
  }
}

absl::Status TablesSink::Begin() {
  for (size_t part = 0; part < tables_->parts().size(); ++part) {
    auto room = tables_->dense().MakeRoom(part);
    if (!room.ok()) return room.status();
    parts_.push_back(*std::move(room));
  }
  return absl::OkStatus();
}

checkpoint::Wanted TablesSink::Wanted() const {
  checkpoint::Wanted wanted;
  for (const LocalRange& range : tables_->model().ranges()) {
    wanted.rows.push_back(
        {range.table, range.first_row,
         range.shape.empty() ? 1 : static_cast<uint64_t>(range.shape[0])});
  }
  wanted.placements = DigestsOf(tables_->placement(), tables_->model().model());
  wanted.shard = tables_->server();
  std::vector<const PlacedTable*> placed;
  for (const TableSpec& table : tables_->model().model().tables) {
    placed.push_back(tables_->placement().Find(table.name));
  }
  wanted.holds = [placed = std::move(placed), server = tables_->server()](
                     size_t table, uint64_t id) {
    return placed[table]->ServerOfId(id) == server;
  };
  return wanted;
}

absl::Status TablesSink::TakeDense(const checkpoint::DenseElements& elements) {
  for (const Piece& piece : pieces_[elements.table]) {
    DensePart::Snapshot& part = parts_[piece.part];
    const tensor::Tensor& stream = elements.stream == 0
                                       ? part.value
                                       : part.slots[elements.stream - 1].tensor;
    const size_t size = tensor::ElementSize(stream.dtype());
    const uint64_t from = std::max(elements.first, piece.first);
    const uint64_t to = std::min(elements.first + elements.bytes.size() / size,
                                 piece.first + piece.elements);
    if (from >= to) continue;
    // Writes without a lock, because the memory is new and no other thread can
    // read it.
    char* const memory = static_cast<char*>(stream.buffer()->mutable_data());
    std::memcpy(memory + (piece.first_in_part + from - piece.first) * size,
                elements.bytes.data() + (from - elements.first) * size,
                (to - from) * size);
    part.steps = std::max(part.steps, elements.step);
    dense_elements_ += to - from;
  }
  return absl::OkStatus();
}

absl::Status TablesSink::TakeSparseStep(size_t table, uint64_t step) {
  const size_t rows = rows_of_[table];
  if (rows == kNone) return absl::OkStatus();
  tables_->SetSparseSteps(rows, std::max(tables_->sparse_steps(rows), step));
  return absl::OkStatus();
}

// Starts to collect rows of the sparse table `rows`, and puts the collected
// rows of the previous table. Rows of one table arrive together, except those
// of another shard file.
absl::Status TablesSink::TurnTo(size_t rows) {
  if (gathering_ == rows) return absl::OkStatus();
  absl::Status status = PutRows();
  gathering_ = rows;
  return status;
}

absl::Status TablesSink::PutRows() {
  if (block_.ids.empty() && block_.removed.empty()) return absl::OkStatus();
  absl::Status status = table(gathering_).Restore(block_);
  block_.Clear();
  return status;
}

absl::Status TablesSink::TakeRow(size_t table_of_model,
                                 const checkpoint::SparseRow& row) {
  const size_t rows = rows_of_[table_of_model];
  absl::Status status = TurnTo(rows);
  if (!status.ok()) return status;
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  if (row.last_use > kMost || row.count > kMost) {
    return absl::DataLossError(
        absl::StrCat("table ", tables_->model().table(table_of_model).name,
                     ": row ", row.id, " was used at ", row.last_use, " and ",
                     row.count, " times, which is beyond 32 bits"));
  }
  const size_t dim = table(rows).options().dim;
  const size_t slots = dim * table(rows).options().slots();
  ++rows_taken_;
  block_.ids.push_back(row.id);
  block_.last_use.push_back(static_cast<uint32_t>(row.last_use));
  block_.updates.push_back(static_cast<uint32_t>(row.count));
  const size_t values = block_.values.size();
  block_.values.resize(values + dim);
  std::memcpy(&block_.values[values], row.bytes.data(), dim * sizeof(float));
  if (slots > 0) {
    const size_t end = block_.slots.size();
    block_.slots.resize(end + slots);
    std::memcpy(&block_.slots[end], row.bytes.data() + dim * sizeof(float),
                slots * sizeof(float));
  }
  return block_.ids.size() < kRowsAtOnce ? absl::OkStatus() : PutRows();
}

// Drops a row. First puts the collected rows into the table, because a block's
// removals are applied before its rows.
absl::Status TablesSink::DropRow(size_t table_of_model, uint64_t id) {
  absl::Status status = TurnTo(rows_of_[table_of_model]);
  const bool is_full = block_.removed.size() == kRowsAtOnce;
  if (status.ok() && (is_full || !block_.ids.empty())) status = PutRows();
  if (status.ok()) block_.removed.push_back(id);
  return status;
}

absl::Status TablesSink::Finish() {
  absl::Status status = PutRows();
  for (size_t rows = 0; status.ok() && rows < tables_->model().rows().size();
       ++rows) {
    const sparse::RestoreLoss loss = table(rows).FinishRestore();
    if (loss.ids > 0) lost_.push_back({rows, loss});
  }
  for (size_t part = 0; status.ok() && part < parts_.size(); ++part) {
    std::vector<size_t> missing = NewPieces(part);
    if (missing.empty()) {
      status = tables_->dense().Restore(part, std::move(parts_[part]));
    } else if (missing.size() < tables_->parts()[part].pieces.size()) {
      tables_->dense().RestoreRest(part, std::move(parts_[part]),
                                   std::move(missing));
    }
  }
  return status;
}

std::vector<size_t> TablesSink::NewPieces(size_t part) const {
  std::vector<size_t> pieces;
  const Part& layout = tables_->parts()[part];
  for (size_t i = 0; i < layout.pieces.size(); ++i) {
    const LocalRange& range = tables_->model().ranges()[layout.pieces[i].range];
    if (is_new_[range.table]) pieces.push_back(i);
  }
  return pieces;
}

}  // namespace penstock::ps
