#include "ps/server/tables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
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
  if (status.ok()) status = tables->MakeDenseParts();
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
      is_new_(model_.model().tables.size()),
      sparse_(model_.rows().size()) {}

absl::Status Tables::MakeOptimizers() {
  for (const TableSpec& table : model_.model().tables) {
    auto optimizer = optim::Optimizer::Create(table.optimizer);
    if (!optimizer.ok()) return optimizer.status();
    optimizers_.push_back(*std::move(optimizer));
  }
  return absl::OkStatus();
}

absl::Status Tables::MakeDenseParts() {
  DenseParts::Options options;
  options.allocator = options_.allocator;
  options.max_bytes = options_.max_dense_bytes;
  auto made = DenseParts::Create(&model_, optimizers_, &workers_, options);
  if (!made.ok()) return made.status();
  dense_ = *std::move(made);
  if (options_.make_dense_room) {
    options_.make_dense_room(dense_->value_bytes());
  }
  return absl::OkStatus();
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

std::vector<TableReport> Tables::Report() const {
  std::vector<TableReport> reports(model_.model().tables.size());
  for (size_t i = 0; i < reports.size(); ++i) {
    reports[i].name = model_.table(i).name;
    reports[i].is_sparse = !model_.table(i).is_dense();
    reports[i].is_new = is_new_[i];
  }
  dense_->AddTo(&reports);
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

absl::Status Tables::CheckTiers() const {
  for (const SparseTable& sparse : sparse_) {
    absl::Status status = sparse.table->TierStatus();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace penstock::ps
