#include "ps/checkpoint/chain.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/checkpoint/names.h"
#include "ps/checkpoint/shard_reader.h"
#include "tensor_service/text.h"

namespace penstock::ps::checkpoint {
namespace {

absl::Status Broken(const Manifest& above, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat(StepFolder(above.attempt.step), " needs ",
                   StepFolder(above.base->step), ": ", what));
}

absl::Status CheckLink(const Manifest& above, const Manifest& base) {
  if (base.attempt.id != above.base->id) {
    return Broken(above, "it is no longer the checkpoint it was");
  }
  if (base.depth + 1 != above.depth ||
      !CheckSameTables(base.model, above.model).ok() ||
      base.placement_epoch != above.placement_epoch) {
    return Broken(above, "it is of another model, placement or chain");
  }
  return absl::OkStatus();
}

struct RowSpan {
  uint64_t first;
  uint64_t end;
};

absl::Status CheckRows(const TableDefinition& table, bool is_full,
                       std::vector<RowSpan> ranges) {
  std::sort(
      ranges.begin(), ranges.end(),
      [](const RowSpan& a, const RowSpan& b) { return a.first < b.first; });
  uint64_t next = 0;
  const auto bad = [&](absl::string_view what, uint64_t row) {
    return absl::DataLossError(absl::StrCat(
        "row ", row, " of table '", tensor::Quoted(table.name), "' ", what));
  };
  for (const RowSpan& range : ranges) {
    if (range.first < next) return bad("appears twice", range.first);
    if (is_full && range.first > next) return bad("is missing", next);
    next = range.end;
  }
  if (is_full && next != Rows(table)) return bad("is missing", next);
  return absl::OkStatus();
}

absl::Status ReadFooters(Files* files, Link* link) {
  for (const ShardInfo& info : link->manifest.shards) {
    const auto shard = ShardReader::Open(files, &link->manifest.model,
                                         link->manifest.attempt, info);
    if (absl::IsNotFound(shard.status())) {
      return absl::DataLossError(shard.status().message());
    }
    if (!shard.ok()) return shard.status();
    link->footers.push_back((*shard)->footer());
  }
  return CheckComplete(link->manifest, link->footers);
}

}  // namespace

absl::Status CheckSameTables(const Model& base, const Model& model) {
  const std::string difference = Difference(base, model);
  if (!difference.empty()) return absl::FailedPreconditionError(difference);
  const bool same_order =
      std::equal(base.tables.begin(), base.tables.end(), model.tables.begin(),
                 model.tables.end(),
                 [](const TableDefinition& a, const TableDefinition& b) {
                   return a.name == b.name;
                 });
  if (same_order) return absl::OkStatus();
  return absl::FailedPreconditionError("its tables have another order");
}

absl::Status CheckComplete(const Manifest& manifest,
                           const std::vector<Footer>& footers) {
  const std::vector<TableDefinition>& tables = manifest.model.tables;
  const bool is_full = !manifest.base.has_value();
  std::vector<std::vector<RowSpan>> ranges(tables.size());
  for (const Footer& footer : footers) {
    for (const Part& part : footer.parts) {
      if (part.kind == TableKind::kDense && part.rows == 0) continue;
      ranges[part.table].push_back(
          {part.first_row, part.first_row + part.rows});
    }
  }
  for (size_t i = 0; i < tables.size(); ++i) {
    if (tables[i].kind == TableKind::kDense) {
      absl::Status status = CheckRows(tables[i], is_full, std::move(ranges[i]));
      if (!status.ok()) return status;
    } else if (is_full && ranges[i].empty()) {
      return absl::DataLossError(absl::StrCat(
          "table '", tensor::Quoted(tables[i].name), "' is missing"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Chain> ReadManifests(Files* files, uint64_t step) {
  Chain chain;
  absl::StatusOr<Manifest> manifest = ReadManifest(files, step);
  if (!manifest.ok()) return manifest.status();
  // Follow the bases to the full checkpoint. The loop ends, because each base
  // is older and has a smaller depth.
  while (manifest->base.has_value()) {
    chain.links.push_back({*std::move(manifest), {}});
    const Manifest& above = chain.links.back().manifest;
    manifest = ReadManifest(files, above.base->step);
    if (absl::IsNotFound(manifest.status())) {
      return Broken(above, "it is missing");
    }
    if (!manifest.ok()) return manifest.status();
    absl::Status status = CheckLink(above, *manifest);
    if (!status.ok()) return status;
  }
  chain.links.push_back({*std::move(manifest), {}});
  return chain;
}

absl::StatusOr<Chain> OpenChain(Files* files, uint64_t step) {
  absl::StatusOr<Chain> chain = ReadManifests(files, step);
  if (!chain.ok()) return chain;
  for (Link& link : chain->links) {
    absl::Status status = ReadFooters(files, &link);
    if (!status.ok()) return status;
  }
  return chain;
}

absl::StatusOr<std::vector<uint64_t>> ListSteps(Files* files) {
  const auto entries = files->List("");
  if (!entries.ok()) return entries.status();
  std::vector<uint64_t> steps;
  for (const FolderEntry& entry : *entries) {
    const auto step = ParseStepFolder(entry.name);
    if (!step.has_value()) continue;
    // Counts an entry that is not a folder, such as a link, as a checkpoint.
    // Skipping it would silently restore an older checkpoint.
    if (entry.type != FolderEntry::Type::kFolder) {
      steps.push_back(*step);
      continue;
    }
    const auto inside = files->List(entry.name);
    // Skips a folder that no longer exists, because another process is removing
    // the checkpoint.
    if (absl::IsNotFound(inside.status())) continue;
    if (!inside.ok()) return inside.status();
    for (const FolderEntry& file : *inside) {
      if (file.name == kManifestName) steps.push_back(*step);
    }
  }
  std::sort(steps.begin(), steps.end(), std::greater<uint64_t>());
  return steps;
}

}  // namespace penstock::ps::checkpoint
