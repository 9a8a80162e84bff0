#include "tests/ps/training/training.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ps/placement/placement_map.h"

namespace penstock::ps {
namespace {

// The ids of push p are from p * kIdsPerPush on.
constexpr uint64_t kIdsPerPush = 1000;

std::string Dense(size_t policy) { return absl::StrCat("d", policy); }
std::string Sparse(size_t policy) { return absl::StrCat("r", policy); }

tensor::Tensor Filled(tensor::Shape shape, size_t elements, float value) {
  return *tensor::Tensor::Of<float>(std::move(shape),
                                    std::vector<float>(elements, value));
}

}  // namespace

std::string TextOf(const std::vector<Staleness>& policies) {
  return absl::StrJoin(
      policies, ",", [](std::string* text, const Staleness& policy) {
        absl::StrAppend(text, policy.steps, ":", policy.backup_workers);
      });
}

std::vector<Staleness> PoliciesIn(const std::string& text) {
  std::vector<Staleness> policies;
  for (const absl::string_view each : absl::StrSplit(text, ',')) {
    const std::vector<std::string> parts = absl::StrSplit(each, ':');
    Staleness policy;
    (void)absl::SimpleAtoi(parts.at(0), &policy.steps);
    (void)absl::SimpleAtoi(parts.at(1), &policy.backup_workers);
    policies.push_back(policy);
  }
  return policies;
}

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

PushRows RowsOf(const TrainingConnection& connection, size_t policies,
                uint64_t push) {
  PushRows rows;
  for (size_t policy = 0; policy < policies; ++policy) {
    const PlacedTable& table = *connection.placement().Find(Sparse(policy));
    rows.ids.emplace_back();
    for (size_t server = 0; server < connection.servers(); ++server) {
      uint64_t id = push * kIdsPerPush;
      while (table.ServerOfId(id) != server) ++id;
      rows.ids.back().push_back(id);
    }
    rows.owners.push_back(
        connection.placement().Find(Dense(policy))->ranges[0].server);
  }
  return rows;
}

StepGradients GradientsOf(const PushRows& rows) {
  StepGradients gradients;
  for (size_t policy = 0; policy < rows.ids.size(); ++policy) {
    const size_t count = rows.ids[policy].size();
    gradients.dense.tensors.push_back(
        {Dense(policy), Filled({kDenseElements}, kDenseElements, 1)});
    gradients.rows.push_back(
        {Sparse(policy), rows.ids[policy],
         Filled({static_cast<int64_t>(count), 1}, count, kGradient)});
  }
  return gradients;
}

}  // namespace penstock::ps
