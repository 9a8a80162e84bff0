#include "ps/server/checkpoint_model.h"

#include <string>
#include <utility>

#include "ps/optim/dense.h"
#include "ps/optim/optimizer.h"
#include "ps/placement/hash.h"

namespace penstock::ps {
namespace {

using checkpoint::SlotDefinition;
using checkpoint::TableDefinition;

TableDefinition DenseTable(const DenseSpec& spec,
                           const optim::Optimizer& optimizer) {
  TableDefinition table;
  table.kind = checkpoint::TableKind::kDense;
  table.dtype = spec.dtype;
  table.shape.assign(spec.shape.begin(), spec.shape.end());
  for (const optim::DenseSlot& slot :
       optim::DenseSlotsOf(optimizer, spec.dtype)) {
    table.slots.push_back({std::string(slot.name), slot.dtype});
  }
  return table;
}

TableDefinition SparseTable(const SparseSpec& spec,
                            const optim::Optimizer& optimizer) {
  TableDefinition table;
  table.kind = checkpoint::TableKind::kSparse;
  table.dtype = tensor::DType::kF32;
  table.shape = {static_cast<int64_t>(spec.dim)};
  for (const optim::Slot& slot : optimizer.slots()) {
    table.slots.push_back({std::string(slot.name), tensor::DType::kF32});
  }
  return table;
}

}  // namespace

absl::StatusOr<checkpoint::Model> CheckpointModelOf(const Model& model) {
  checkpoint::Model described;
  described.tables.reserve(model.tables.size());
  for (const TableSpec& spec : model.tables) {
    const auto optimizer = optim::Optimizer::Create(spec.optimizer);
    if (!optimizer.ok()) return optimizer.status();
    TableDefinition table =
        spec.is_dense()
            ? DenseTable(absl::get<DenseSpec>(spec.rows), **optimizer)
            : SparseTable(absl::get<SparseSpec>(spec.rows), **optimizer);
    table.name = spec.name;
    described.tables.push_back(std::move(table));
  }
  absl::Status status = checkpoint::CheckModel(described);
  if (!status.ok()) return status;
  return described;
}

std::vector<uint64_t> DigestsOf(const PlacementMap& placement,
                                const Model& model) {
  std::vector<uint64_t> digests;
  digests.reserve(model.tables.size());
  for (const TableSpec& table : model.tables) {
    uint64_t digest = 0;
    const PlacedTable* const placed = placement.Find(table.name);
    for (const uint32_t server : placed->shard_servers) {
      digest = Fmix64(digest + server + 1);
    }
    digests.push_back(digest);
  }
  return digests;
}

}  // namespace penstock::ps
