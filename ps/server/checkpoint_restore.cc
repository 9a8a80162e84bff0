#include "ps/server/checkpoint_restore.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ps/checkpoint/names.h"
#include "ps/checkpoint/restore.h"
#include "ps/checkpoint/verify.h"
#include "ps/server/checkpoint_model.h"
#include "transport/base/log.h"

namespace penstock::ps {
namespace {

using checkpoint::Chain;
using checkpoint::StepFolder;

// Rows go into a table so many at a time.
constexpr size_t kRowsAtOnce = 1024;
// Tables of which this server has no ids, and dense ones.
constexpr size_t kNone = std::numeric_limits<size_t>::max();

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

 private:
  // Elements of a table that lie one behind the other in a part.
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
};

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
    auto room = tables_->MakeRoom(part);
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
    // Nobody else has the memory: it is new.
    char* const memory = static_cast<char*>(stream.buffer()->mutable_data());
    std::memcpy(memory + (piece.first_in_part + from - piece.first) * size,
                elements.bytes.data() + (from - elements.first) * size,
                (to - from) * size);
    part.steps = std::max(part.steps, elements.step);
  }
  return absl::OkStatus();
}

absl::Status TablesSink::TakeSparseStep(size_t table, uint64_t step) {
  const size_t rows = rows_of_[table];
  if (rows == kNone) return absl::OkStatus();
  tables_->SetSparseSteps(rows, std::max(tables_->sparse_steps(rows), step));
  return absl::OkStatus();
}

// A table's rows come together, but for those of another shard.
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

// A block's removals come before its rows, so earlier rows go in first.
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
    table(rows).FinishRestore();
  }
  for (size_t part = 0; status.ok() && part < parts_.size(); ++part) {
    std::vector<size_t> missing = NewPieces(part);
    if (missing.empty()) {
      status = tables_->Restore(part, std::move(parts_[part]));
    } else if (missing.size() < tables_->parts()[part].pieces.size()) {
      tables_->RestoreRest(part, std::move(parts_[part]), std::move(missing));
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

// Returns which tables are not in the checkpoint, and tells of them, and of
// those that are dropped.
std::vector<bool> FindNew(const Chain& chain, const checkpoint::Model& model,
                          Tables* tables,
                          const std::function<void(const std::string&)>& log) {
  const std::vector<std::string> added =
      checkpoint::NotIn(chain.model(), model);
  const std::vector<std::string> dropped =
      checkpoint::NotIn(model, chain.model());
  const auto say = [&](const std::vector<std::string>& names,
                       absl::string_view what) {
    if (names.empty()) return;
    log(absl::StrCat("restore: ", StepFolder(chain.newest().attempt.step), what,
                     absl::StrJoin(names, ", ")));
  };
  say(added, " does not have these tables, which begin anew: ");
  say(dropped, " has these tables, which are not in the model: ");
  std::vector<bool> is_new(model.tables.size());
  for (size_t i = 0; i < is_new.size(); ++i) {
    is_new[i] =
        std::count(added.begin(), added.end(), model.tables[i].name) > 0;
    if (is_new[i]) tables->SetNew(i);
  }
  return is_new;
}

absl::StatusOr<Chain> FindChain(
    checkpoint::Files* files, uint64_t step,
    const std::function<void(const std::string&)>& log) {
  if (step > 0) {
    auto chain = checkpoint::OpenChain(files, step);
    if (!absl::IsNotFound(chain.status())) return chain;
    return absl::FailedPreconditionError(absl::StrCat(
        "restore: there is no ", StepFolder(step),
        " in this server's folder: all servers need the same, shared one"));
  }
  auto found = checkpoint::FindLastGood(files, checkpoint::Thoroughness::kFull);
  if (!found.ok()) return found.status();
  for (const absl::Status& skipped : found->skipped) {
    log(absl::StrCat("restore: passed over: ", skipped.message()));
  }
  return std::move(found->chain);
}

}  // namespace

absl::StatusOr<RestoredModel> RestoreCheckpoint(
    checkpoint::Files* files, uint64_t step, const RestoreOptions& options,
    Tables* tables, const std::function<void(const std::string&)>& log) {
  const auto chain = FindChain(files, step, log);
  if (!chain.ok()) return chain.status();
  const auto model = CheckpointModelOf(tables->model().model());
  if (!model.ok()) return model.status();
  TablesSink sink(tables, FindNew(*chain, *model, tables, log));
  absl::Status status = sink.Begin();
  if (status.ok()) {
    checkpoint::Wanted wanted = sink.Wanted();
    wanted.may_drop_tables = options.may_drop_tables;
    status = checkpoint::Restore(files, *chain, *model, wanted, &sink);
  }
  if (status.ok()) status = sink.Finish();
  const checkpoint::Manifest& manifest = chain->newest();
  if (!status.ok()) {
    // NOT_FOUND would say that there is no checkpoint, and training would begin
    // anew; what is missing is a file of one.
    return absl::Status(
        absl::IsNotFound(status) ? absl::StatusCode::kDataLoss : status.code(),
        absl::StrCat("restore ", StepFolder(manifest.attempt.step), ": ",
                     status.message()));
  }
  RestoredModel restored;
  restored.step = manifest.attempt.step;
  for (const checkpoint::WorkerClock& clock : manifest.clocks) {
    restored.clocks.push_back({{clock.rank, clock.incarnation}, clock.clock});
  }
  return restored;
}

std::function<absl::StatusOr<RestoredModel>(uint64_t step, Tables* tables)>
RestoreFrom(checkpoint::Files* files, absl::optional<uint64_t> wanted,
            const RestoreOptions& options) {
  return [files, wanted, options](
             uint64_t step, Tables* tables) -> absl::StatusOr<RestoredModel> {
    if (step > 0 && wanted.has_value() && *wanted != step) {
      return absl::FailedPreconditionError(absl::StrCat(
          "restore: this server was told to begin with ", StepFolder(*wanted),
          ", and the others have begun with ", StepFolder(step)));
    }
    return RestoreCheckpoint(
        files, wanted.value_or(step), options, tables,
        [](const std::string& line) { base::LogWarning("ps: " + line); });
  };
}

}  // namespace penstock::ps
