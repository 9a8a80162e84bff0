#include "tests/ps/training/training.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/placement/placement_map.h"

namespace penstock::ps {
namespace {

std::string Dense(size_t policy) { return absl::StrCat("d", policy); }
std::string Sparse(size_t policy) { return absl::StrCat("r", policy); }

tensor::Tensor Filled(tensor::Shape shape, size_t elements, float value) {
  return *tensor::Tensor::Of<float>(std::move(shape),
                                    std::vector<float>(elements, value));
}

}  // namespace

Model ModelOf(const std::vector<Staleness>& policies) {
  Model model;
  for (size_t policy = 0; policy < policies.size(); ++policy) {
    TableSpec dense;
    dense.name = Dense(policy);
    dense.rows = DenseSpec{tensor::DType::kF32, {kDenseElements}};
    dense.staleness = policies[policy].steps;
    dense.backup_workers = policies[policy].backup_workers;
    dense.optimizer.schedule.learning_rate = 1;
    TableSpec sparse = dense;
    sparse.name = Sparse(policy);
    SparseSpec rows;
    rows.dim = 1;
    sparse.rows = rows;
    model.tables.push_back(dense);
    model.tables.push_back(sparse);
  }
  return model;
}

tensor::Bundle Zeros(size_t policies) {
  tensor::Bundle zeros;
  for (size_t policy = 0; policy < policies; ++policy) {
    zeros.tensors.push_back(
        {Dense(policy), Filled({kDenseElements}, kDenseElements, 0)});
  }
  return zeros;
}

PushIds IdsOf(const TrainingConnection& connection, size_t policies,
              uint64_t push) {
  PushIds ids(policies);
  for (size_t policy = 0; policy < policies; ++policy) {
    const PlacedTable& table = *connection.placement().Find(Sparse(policy));
    for (size_t server = 0; server < connection.servers(); ++server) {
      uint64_t id = push * kIdsPerPush;
      while (table.ServerOfId(id) != server) ++id;
      ids[policy].push_back(id);
    }
  }
  return ids;
}

StepGradients GradientsOf(const PushIds& ids) {
  StepGradients gradients;
  for (size_t policy = 0; policy < ids.size(); ++policy) {
    const size_t count = ids[policy].size();
    gradients.dense.tensors.push_back(
        {Dense(policy), Filled({kDenseElements}, kDenseElements, 1)});
    gradients.rows.push_back(
        {Sparse(policy), ids[policy],
         Filled({static_cast<int64_t>(count), 1}, count, kGradient)});
  }
  return gradients;
}

}  // namespace penstock::ps
