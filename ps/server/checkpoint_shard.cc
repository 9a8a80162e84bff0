#include "ps/server/checkpoint_shard.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ps/sparse/row_block.h"

namespace penstock::ps {
namespace {

// Limits how many rows are copied out of a table under one lock.
constexpr size_t kRowsAtOnce = 1024;
// Limits the bytes of a dense value and its slots that are written before the
// cancellation is checked again. Takes less than a second on a disk.
constexpr uint64_t kDenseBytesAtOnce = 64 << 20;

absl::string_view BytesOf(const std::vector<float>& floats, size_t first,
                          size_t count) {
  return {reinterpret_cast<const char*>(floats.data() + first),
          count * sizeof(float)};
}

uint64_t RowsOf(const LocalRange& range) {
  return range.shape.empty() ? 1 : static_cast<uint64_t>(range.shape[0]);
}

class SnapshotWriter {
 public:
  SnapshotWriter(const Tables& tables, const checkpoint::Model& model,
                 const Cancellation* cancellation, checkpoint::Pace* pace,
                 ShardProgress* progress, checkpoint::ShardWriter* writer)
      : tables_(tables),
        model_(model),
        cancellation_(cancellation),
        pace_(pace),
        progress_(progress),
        writer_(writer) {}

  // Sets the total of progress_ to the bytes to write. Counts all rows of
  // sparse tables.
  void Count(const std::vector<size_t>& parts);
  absl::Status WriteRows(size_t rows, const ModelSnapshot::Sparse& snapshot);
  absl::Status WritePart(size_t part, const DensePart::Snapshot& snapshot);

 private:
  absl::Status CheckCancelled() const {
    if (cancellation_ == nullptr || !cancellation_->is_cancelled()) {
      return absl::OkStatus();
    }
    return absl::CancelledError("checkpoint: the caller has cancelled");
  }
  uint64_t BytesOfRows(size_t rows) const;
  absl::Status WriteBlock(const sparse::RowBlock& block, size_t dim);
  absl::Status WritePiece(const Part::Piece& piece,
                          const DensePart::Snapshot& snapshot);

  const Tables& tables_;
  const checkpoint::Model& model_;
  const Cancellation* const cancellation_;
  checkpoint::Pace* const pace_;
  ShardProgress* const progress_;
  checkpoint::ShardWriter* const writer_;
  std::vector<uint64_t> expected_;  // of each sparse table
};

uint64_t SnapshotWriter::BytesOfRows(size_t rows) const {
  const sparse::Table& table = tables_.table(rows);
  return table.counters().rows *
         checkpoint::RowBytes(
             model_.tables[tables_.model().rows()[rows].table]);
}

void SnapshotWriter::Count(const std::vector<size_t>& parts) {
  uint64_t total = 0;
  for (size_t rows = 0; rows < tables_.model().rows().size(); ++rows) {
    expected_.push_back(BytesOfRows(rows));
    total += expected_.back();
  }
  for (const size_t part : parts) {
    for (const Part::Piece& piece : tables_.parts()[part].pieces) {
      const LocalRange& range = tables_.model().ranges()[piece.range];
      const checkpoint::TableDefinition& table = model_.tables[range.table];
      total += RowsOf(range) * checkpoint::RowBytes(table);
    }
  }
  progress_->done = 0;
  progress_->total = total;
}

absl::Status SnapshotWriter::WriteRows(size_t rows,
                                       const ModelSnapshot::Sparse& snapshot) {
  const size_t table = tables_.model().rows()[rows].table;
  const size_t dim = tables_.table(rows).options().dim;
  absl::Status status = writer_->BeginSparse(table, snapshot.steps);
  uint64_t expected = expected_[rows];
  sparse::RowBlock block;
  while (status.ok()) {
    status = CheckCancelled();
    if (!status.ok()) break;
    const auto more = snapshot.rows->Next(kRowsAtOnce, &block);
    if (!more.ok()) return more.status();
    if (!*more) break;
    status = WriteBlock(block, dim);
    const uint64_t bytes =
        std::min(expected,
                 block.ids.size() * checkpoint::RowBytes(model_.tables[table]));
    progress_->done += bytes;
    expected -= bytes;
    if (snapshot.rows->is_short_of_room()) {
      pace_->Hurry();
    } else {
      pace_->Rest();
    }
  }
  progress_->total -= expected;  // the rows that have not changed
  return status;
}

absl::Status SnapshotWriter::WriteBlock(const sparse::RowBlock& block,
                                        size_t dim) {
  for (const uint64_t id : block.removed) {
    absl::Status status = writer_->RemoveRow(id);
    if (!status.ok()) return status;
  }
  if (block.ids.empty()) return absl::OkStatus();
  const size_t slots = block.slots.size() / block.ids.size();
  std::string bytes;
  for (size_t i = 0; i < block.ids.size(); ++i) {
    bytes = absl::StrCat(BytesOf(block.values, i * dim, dim),
                         BytesOf(block.slots, i * slots, slots));
    absl::Status status = writer_->AddRow(
        {block.ids[i], block.last_use[i], block.updates[i], bytes});
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SnapshotWriter::WritePart(size_t part,
                                       const DensePart::Snapshot& snapshot) {
  for (const Part::Piece& piece : tables_.parts()[part].pieces) {
    absl::Status status = WritePiece(piece, snapshot);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SnapshotWriter::WritePiece(const Part::Piece& piece,
                                        const DensePart::Snapshot& snapshot) {
  const LocalRange& range = tables_.model().ranges()[piece.range];
  const checkpoint::TableDefinition& table = model_.tables[range.table];
  const uint64_t elements = checkpoint::RowElements(table);
  const uint64_t all = RowsOf(range);
  const uint64_t at_once =
      kDenseBytesAtOnce / std::max<uint64_t>(1, checkpoint::RowBytes(table)) +
      1;
  checkpoint::DensePart rows;
  rows.table = range.table;
  rows.step = snapshot.steps;
  for (uint64_t first = 0; first < all; first += rows.rows) {
    absl::Status status = CheckCancelled();
    if (!status.ok()) return status;
    rows.first_row = range.first_row + first;
    rows.rows = std::min(at_once, all - first);
    rows.streams.clear();
    const auto add = [&](const tensor::Tensor& tensor) {
      const size_t size = tensor::ElementSize(tensor.dtype());
      rows.streams.push_back(
          tensor.bytes().substr((piece.first + first * elements) * size,
                                rows.rows * elements * size));
    };
    add(snapshot.value);
    for (const tensor::NamedTensor& slot : snapshot.slots) add(slot.tensor);
    status = writer_->AddDense(rows);
    if (!status.ok()) return status;
    progress_->done += rows.rows * checkpoint::RowBytes(table);
    pace_->Rest();
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteSnapshot(const Tables& tables, const checkpoint::Model& model,
                           const absl::optional<PartSteps>& base,
                           const Cancellation* cancellation,
                           checkpoint::Pace* pace, ModelSnapshot snapshot,
                           ShardProgress* progress,
                           checkpoint::ShardWriter* writer) {
  SnapshotWriter to(tables, model, cancellation, pace, progress, writer);
  std::vector<size_t> changed;
  for (size_t part = 0; part < snapshot.parts.size(); ++part) {
    if (!base.has_value() || (*base)[part] != snapshot.parts[part].steps) {
      changed.push_back(part);
    } else {
      snapshot.parts[part] = {};  // else the next step copies the slots
    }
  }
  to.Count(changed);
  for (size_t rows = 0; rows < snapshot.tables.size(); ++rows) {
    absl::Status status = to.WriteRows(rows, snapshot.tables[rows]);
    if (!status.ok()) return status;
    snapshot.tables[rows].rows = nullptr;
  }
  for (const size_t part : changed) {
    absl::Status status = to.WritePart(part, snapshot.parts[part]);
    if (!status.ok()) return status;
    snapshot.parts[part] = {};
  }
  return absl::OkStatus();
}

}  // namespace penstock::ps
