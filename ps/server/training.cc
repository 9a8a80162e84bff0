#include "ps/server/training.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ps/checkpoint/names.h"
#include "ps/model/wire.h"
#include "ps/server/checkpoint_model.h"
#include "transport/base/printable.h"

namespace penstock::ps {
namespace {

// Checks that max_held_bytes is enough for a synchronous step, which needs the
// gradients of all workers in memory together.
absl::Status CheckHeldBytes(const Tables& tables,
                            const TrainingLimits& limits) {
  size_t bytes = 0;
  for (const Part& part : tables.parts()) {
    if (tables.model().policies()[part.policy].staleness != 0) continue;
    auto size = tensor::ByteSize(part.dtype, part.shape);
    if (size.ok()) bytes += *size;
  }
  if (bytes <= limits.max_held_bytes / limits.workers) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "define: a synchronous step holds the gradients of ", limits.workers,
      " workers, of ", bytes, " bytes each, and this server may hold ",
      limits.max_held_bytes,
      " bytes of gradients: add servers, or raise --held-gradients"));
}

}  // namespace

std::string TextOf(const absl::optional<CutId>& cut) {
  if (!cut.has_value()) return "no checkpoint";
  return absl::StrCat(checkpoint::StepFolder(cut->step), " (cut ",
                      absl::Hex(cut->id), ")");
}

bool HasSynchronousTable(const Model& model) {
  return std::any_of(
      model.tables.begin(), model.tables.end(),
      [](const TableSpec& table) { return table.staleness == 0; });
}

absl::StatusOr<std::shared_ptr<Training>> MakeTraining(
    const ServerDefinition& definition, const TrainingLimits& limits) {
  if (definition.run == 0) {
    return absl::InvalidArgumentError("define: run is 0; draw one at random");
  }
  absl::Status status = CheckModel(definition.model);
  if (!status.ok()) return status;
  std::vector<TableLayout> layouts;
  for (const TableSpec& table : definition.model.tables) {
    auto layout = LayoutOf(table);
    if (!layout.ok()) return layout.status();
    layouts.push_back(*std::move(layout));
  }
  auto placement = PlacementMap::Make(layouts, definition.servers, {});
  if (!placement.ok()) return placement.status();
  auto tables = Tables::Create(
      definition.model,
      std::make_shared<const PlacementMap>(*std::move(placement)),
      definition.server, limits.tables);
  if (!tables.ok()) return tables.status();
  status = CheckHeldBytes(**tables, limits);
  // Fails already here, instead of at the first checkpoint.
  if (status.ok()) status = CheckpointModelOf(definition.model).status();
  if (!status.ok()) return status;
  auto training = std::make_shared<Training>();
  training->run = definition.run;
  training->server = definition.server;
  training->cut = definition.cut;
  training->hash_seed = limits.tables.hash_seed;
  training->tables = *std::move(tables);
  return training;
}

absl::Status CheckSame(const Training& training,
                       const ServerDefinition& definition) {
  const PlacementMap& placement = training.tables->placement();
  std::string difference =
      Difference(training.tables->model().model(), definition.model);
  if (difference.empty() && definition.servers != placement.servers()) {
    difference = absl::StrCat("its servers are ",
                              absl::StrJoin(placement.servers(), ", "));
  }
  if (difference.empty() && definition.server != training.server) {
    difference = absl::StrCat("it is server ", training.server);
  }
  if (difference.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("define: this server trains another model: ",
                   base::Printable(difference, 1000),
                   "; restart the servers to train this one"));
}

Coordinator::Options CoordinatorOptionsOf(const Training& training,
                                          const RestoredModel& restored) {
  Coordinator::Options options;
  options.membership.clocks = restored.clocks;
  options.policies = training.tables->model().policies();
  uint64_t highest = 0;
  uint64_t lowest =
      restored.clocks.empty() ? 0 : std::numeric_limits<uint64_t>::max();
  for (const RankClock& rank : restored.clocks) {
    highest = std::max(highest, rank.clock);
    lowest = std::min(lowest, rank.clock);
  }
  options.membership.floor = restored.floor.value_or(lowest);
  for (ConsistencyPolicy::Options& policy : options.policies) {
    // Without a stored version, continues at the highest clock of any rank.
    if (policy.staleness == 0) {
      policy.version = restored.version.value_or(highest);
    }
  }
  return options;
}

}  // namespace penstock::ps
