#include "ps/server/tables.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ps/optim/dense.h"
#include "ps/optim/gradient.h"
#include "transport/base/printable.h"

namespace penstock::ps {

absl::StatusOr<std::unique_ptr<Tables>> Tables::Create(
    Model model, std::shared_ptr<const PlacementMap> placement, uint32_t server,
    const Options& options) {
  auto local = LocalModel::Create(std::move(model), *placement, server);
  if (!local.ok()) return local.status();
  std::unique_ptr<Tables> tables(
      new Tables(*std::move(local), std::move(placement), server, options));
  absl::Status status = tables->MakeOptimizers();
  if (status.ok()) status = tables->CheckDenseBytes();
  if (status.ok()) status = tables->MakeSparseTables();
  if (!status.ok()) return status;
  return tables;
}

Tables::Tables(LocalModel model, std::shared_ptr<const PlacementMap> placement,
               uint32_t server, const Options& options)
    : model_(std::move(model)),
      placement_(std::move(placement)),
      server_(server),
      options_(options),
      parts_(LayOut(model_)),
      is_new_(model_.model().tables.size()),
      dense_(parts_.size()),
      missing_parts_(parts_.size()),
      sparse_(model_.rows().size()) {
  for (size_t i = 0; i < parts_.size(); ++i) part_of_[parts_[i].name] = i;
}

absl::Status Tables::MakeOptimizers() {
  for (const TableSpec& table : model_.model().tables) {
    auto optimizer = optim::Optimizer::Create(table.optimizer);
    if (!optimizer.ok()) return optimizer.status();
    optimizers_.push_back(*std::move(optimizer));
  }
  return absl::OkStatus();
}

// Counts the values, their next versions and the slots. Counts in floating
// point, because the sum may overflow an integer.
absl::Status Tables::CheckDenseBytes() {
  double values = 0;  // and their next versions
  double slots = 0;
  for (const Part& part : parts_) {
    auto value = tensor::ByteSize(part.dtype, part.shape);
    if (!value.ok()) return value.status();
    const auto elements = static_cast<double>(ElementsOf(part));
    values += 2 * elements * tensor::ElementSize(part.dtype);
    for (const optim::DenseSlot& slot :
         optim::DenseSlotsOf(*optimizers_[part.table], part.dtype)) {
      slots += elements * tensor::ElementSize(slot.dtype);
    }
  }
  const auto most = static_cast<double>(options_.max_dense_bytes);
  const double bytes = values + slots;
  if (bytes <= most) {
    max_version_bytes_ = std::max(most - slots, 2 * values);
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the dense tables take %.0f bytes at this server, with their next "
      "versions and slots, and it may use %d: add servers, or raise --memory",
      bytes, options_.max_dense_bytes));
}

absl::Status Tables::MakeSparseTables() {
  if (options_.max_sparse_bytes > 0) {
    pool_ = std::make_unique<sparse::Pool>(
        options_.max_sparse_bytes,
        "give it a budget_bytes, and let it evict or spill, or start the "
        "server with a larger --sparse-memory");
  }
  for (size_t i = 0; i < sparse_.size(); ++i) {
    const size_t table = model_.rows()[i].table;
    sparse::Options options = ps::OptionsOf(model_.table(table));
    options.hash_seed = options_.hash_seed;
    options.pool = pool_.get();
    if (options.above_budget == sparse::AboveBudget::kSpill) {
      if (options_.new_tier == nullptr) {
        return absl::FailedPreconditionError(absl::StrCat(
            "table ", base::Printable(options.name, 100),
            ": its rows go to disk above its budget, and this server has no "
            "folder for them: start it with --spill=DIR"));
      }
      sparse_[i].tier = options_.new_tier();
      options.tier = sparse_[i].tier.get();
    }
    auto made = sparse::Table::Create(options);
    if (!made.ok()) return made.status();
    sparse_[i].table = *std::move(made);
    sparse_[i].optimizer = optimizers_[table];
  }
  return absl::OkStatus();
}

DensePart::Options Tables::OptionsOf(size_t part) const {
  DensePart::Options options;
  options.name =
      absl::StrCat("variable ", base::Printable(parts_[part].name, 100));
  options.optimizer = optimizers_[parts_[part].table];
  options.workers = &workers_;
  options.allocator = options_.allocator;
  return options;
}

absl::StatusOr<size_t> Tables::FindPart(const std::string& name) const {
  const auto found = part_of_.find(name);
  if (found != part_of_.end()) return found->second;
  return absl::InvalidArgumentError(
      absl::StrCat("variable ", base::Printable(name, 100),
                   ": this server has no such part; GetModel() names them"));
}

void Tables::SetPart(size_t at, std::unique_ptr<DensePart> part) {
  dense_[at] = std::move(part);
  --missing_parts_;
}

absl::Status Tables::NameTable(const absl::Status& status, size_t part,
                               const tensor::Tensor& elements,
                               tensor::DType dtype,
                               absl::string_view remedy) const {
  const Part& pack = parts_[part];
  if (pack.pieces.size() < 2 || elements.shape() != pack.shape) return status;
  const size_t size = tensor::ElementSize(elements.dtype());
  for (const Part::Piece& piece : pack.pieces) {
    const absl::Status found = optim::CheckGradient(
        {elements.dtype(), elements.bytes().data() + piece.first * size,
         piece.elements},
        dtype, workers_);
    if (found.ok()) continue;
    return absl::Status(
        status.code(),
        absl::StrCat("variable ", model_.ranges()[piece.range].name, ": ",
                     found.message(), remedy));
  }
  return status;
}

absl::Status Tables::Initialize(const tensor::Bundle& values) {
  absl::MutexLock lock(&setup_mu_);
  for (const tensor::NamedTensor& named : values.tensors) {
    const auto at = FindPart(named.name);
    if (!at.ok()) return at.status();
    if (dense_[*at] != nullptr) continue;
    const Part& part = parts_[*at];
    if (named.tensor.dtype() != part.dtype ||
        named.tensor.shape() != part.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("variable ", base::Printable(part.name, 100),
                       ": its first value is ", named.tensor.ToString(),
                       ", it is ", tensor::Describe(part.dtype, part.shape)));
    }
    // Copies the value out of the message, into memory that can be sent.
    auto copy = named.tensor.Copy(options_.allocator);
    if (!copy.ok()) return copy.status();
    auto made = DensePart::Create(OptionsOf(*at), *std::move(copy));
    if (!made.ok()) {
      return NameTable(made.status(), *at, named.tensor, tensor::DType::kF64,
                       "");
    }
    if (const auto rest = incomplete_.find(*at); rest != incomplete_.end()) {
      auto whole = Complete(*at, **made, rest->second);
      if (!whole.ok()) return whole.status();
      made = std::move(whole);
      incomplete_.erase(rest);
    }
    SetPart(*at, *std::move(made));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DensePart>> Tables::Complete(
    size_t part, const DensePart& first, Incomplete rest) const {
  const DensePart::Snapshot from = first.TakeSnapshot();
  const auto copy = [](const Part::Piece& piece, const tensor::Tensor& source,
                       const tensor::Tensor& to) {
    const size_t size = tensor::ElementSize(to.dtype());
    // No other thread can read this memory yet, so writing needs no lock.
    std::memcpy(to.buffer()->mutable_data() + piece.first * size,
                source.bytes().data() + piece.first * size,
                piece.elements * size);
  };
  for (const size_t at : rest.missing) {
    const Part::Piece& piece = parts_[part].pieces[at];
    copy(piece, from.value, rest.snapshot.value);
    for (size_t i = 0; i < rest.snapshot.slots.size(); ++i) {
      copy(piece, from.slots[i].tensor, rest.snapshot.slots[i].tensor);
    }
  }
  return DensePart::Restore(OptionsOf(part), std::move(rest.snapshot));
}

absl::StatusOr<DensePart::Snapshot> Tables::MakeRoom(size_t part) const {
  const Part& layout = parts_[part];
  DensePart::Snapshot room;
  auto value =
      tensor::Tensor::Allocate(layout.dtype, layout.shape, options_.allocator);
  if (!value.ok()) return value.status();
  room.value = *std::move(value);
  for (const optim::DenseSlot& slot :
       optim::DenseSlotsOf(*optimizers_[layout.table], layout.dtype)) {
    auto memory = tensor::Tensor::Allocate(slot.dtype, layout.shape,
                                           tensor::HeapAllocator());
    if (!memory.ok()) return memory.status();
    room.slots.push_back({std::string(slot.name), *std::move(memory)});
  }
  return room;
}

absl::Status Tables::Restore(size_t part, DensePart::Snapshot snapshot) {
  absl::MutexLock lock(&setup_mu_);
  auto made = DensePart::Restore(OptionsOf(part), std::move(snapshot));
  if (!made.ok()) return made.status();
  SetPart(part, *std::move(made));
  return absl::OkStatus();
}

void Tables::RestoreRest(size_t part, DensePart::Snapshot snapshot,
                         std::vector<size_t> missing) {
  absl::MutexLock lock(&setup_mu_);
  incomplete_[part] = {std::move(snapshot), std::move(missing)};
}

std::vector<TableReport> Tables::Report() const {
  std::vector<TableReport> reports(model_.model().tables.size());
  for (size_t i = 0; i < reports.size(); ++i) {
    reports[i].name = model_.table(i).name;
    reports[i].is_sparse = !model_.table(i).is_dense();
    reports[i].is_new = is_new_[i];
  }
  for (size_t i = 0; has_values() && i < parts_.size(); ++i) {
    for (const Part::Piece& piece : parts_[i].pieces) {
      const LocalRange& range = model_.ranges()[piece.range];
      TableReport& report = reports[range.table];
      report.rows += range.shape.empty() ? 1 : range.shape[0];
      report.bytes += dense_[i]->held_bytes() * piece.elements /
                      std::max<size_t>(1, ElementsOf(parts_[i]));
      report.steps = std::max(report.steps, dense_[i]->steps());
    }
  }
  for (size_t i = 0; i < sparse_.size(); ++i) {
    TableReport& report = reports[model_.rows()[i].table];
    const sparse::Counters counters = sparse_[i].table->counters();
    report.steps = sparse_[i].steps;
    report.bytes = counters.bytes;
    report.rows = counters.rows;
    report.spilled_rows = counters.spilled_rows;
    report.budget_bytes = sparse_[i].table->options().budget_bytes;
    report.hits = counters.hits;
    report.misses = counters.misses;
    report.evicted_rows =
        counters.expired + counters.over_capacity + counters.over_budget;
    report.not_admitted = counters.not_admitted;
    report.refused_pushes = counters.refused;
    report.dropped_gradients = counters.dropped;
  }
  return reports;
}

bool Tables::Maintain(absl::Time now) {
  bool has_more = false;
  for (SparseTable& sparse : sparse_) has_more |= sparse.table->Maintain(now);
  return has_more;
}

size_t Tables::VersionBytes() const {
  size_t bytes = 0;
  for (const auto& part : dense_) bytes += part->version_bytes();
  return bytes;
}

absl::Status Tables::CheckVersions() {
  const auto fits = [this](size_t bytes) {
    return static_cast<double>(bytes) <= max_version_bytes_;
  };
  if (fits(VersionBytes())) return absl::OkStatus();
  for (const auto& part : dense_) part->TrimVersions();
  const size_t bytes = VersionBytes();
  if (fits(bytes)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "versions of the dense values take %d bytes, as those who have pulled "
      "older ones keep them, or do not read the answers, and may take %.0f: "
      "let "
      "go of what was pulled, or raise --memory",
      bytes, max_version_bytes_));
}

absl::Status Tables::CheckTiers() const {
  for (const SparseTable& sparse : sparse_) {
    absl::Status status = sparse.table->TierStatus();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace penstock::ps
