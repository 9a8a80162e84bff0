#include "bench/ps/training/workload.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/random/zipf_distribution.h"
#include "absl/strings/str_cat.h"
#include "ps/random/mix.h"

namespace penstock::bench {
namespace {

using tensor::DType;
using tensor::Tensor;

constexpr int64_t kSmallElements = 64;  // 256 B
constexpr uint32_t kDim = 64;
constexpr char kSparseTable[] = "embedding";
// The number of ids in each push that creates rows.
constexpr size_t kFillBatch = 1 << 16;
// The number of batches of ids. Large, so that the batches do not stay in the
// caches.
constexpr size_t kBatches = 32;

absl::StatusOr<Tensor> Filled(tensor::Shape shape, float element) {
  auto tensor = Tensor::Allocate(DType::kF32, std::move(shape));
  if (!tensor.ok()) return tensor.status();
  auto elements = tensor->mutable_flat<float>();
  if (!elements.ok()) return elements.status();
  std::fill(elements->begin(), elements->end(), element);
  return tensor;
}

ps::TableSpec TableOf(std::string name) {
  ps::TableSpec table;
  table.name = std::move(name);
  table.optimizer.schedule.learning_rate = kRate;
  return table;
}

ps::StepGradients RowsOf(std::vector<uint64_t> ids, const Tensor& gradients) {
  ps::StepGradients push;
  push.rows.push_back({kSparseTable, std::move(ids), gradients});
  return push;
}

absl::StatusOr<Tensor> RowGradients(size_t ids, float element) {
  return Filled({static_cast<int64_t>(ids), kDim}, element);
}

}  // namespace

absl::StatusOr<Workload> Workload::Make(absl::string_view name,
                                        const Sizes& sizes) {
  Workload workload;
  absl::Status status;
  if (name == "dense") {
    status = workload.AddDense(1, sizes.elements);
  } else if (name == "dense4") {
    status = workload.AddDense(4, sizes.elements / 4);
  } else if (name == "small") {
    status = workload.AddDense(sizes.variables, kSmallElements);
  } else if (name == "uniform" || name == "zipf") {
    status = workload.AddSparse(sizes, name == "zipf");
  } else {
    return absl::InvalidArgumentError(absl::StrCat("no workload ", name));
  }
  if (!status.ok()) return status;
  return workload;
}

absl::Status Workload::AddDense(int64_t tables, int64_t elements) {
  ps::StepGradients push;
  for (int64_t i = 0; i < tables; ++i) {
    model_.tables.push_back(TableOf(absl::StrCat("variable/", i)));
    model_.tables.back().rows = ps::DenseSpec{DType::kF32, {elements}};
    auto gradient = Filled({elements}, 1);
    if (!gradient.ok()) return gradient.status();
    push.dense.tensors.push_back(
        {model_.tables.back().name, *std::move(gradient)});
  }
  pulls_.emplace_back();
  pushes_.push_back(std::move(push));
  return absl::OkStatus();
}

// Adds a sparse table. Mixes ids, so that frequent ids are spread over the
// table.
absl::Status Workload::AddSparse(const Sizes& sizes, bool is_skewed) {
  model_.tables.push_back(TableOf(kSparseTable));
  ps::SparseSpec spec;
  spec.dim = kDim;
  model_.tables.back().rows = spec;
  for (uint64_t first = 0; first < sizes.rows; first += kFillBatch) {
    std::vector<uint64_t> ids(
        std::min<uint64_t>(kFillBatch, sizes.rows - first));
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = ps::Mix(first + i);
    auto zeroes = RowGradients(ids.size(), 0);
    if (!zeroes.ok()) return zeroes.status();
    fill_.push_back(RowsOf(std::move(ids), *zeroes));
  }
  std::mt19937_64 random(1);
  std::uniform_int_distribution<uint64_t> uniform(0, sizes.rows - 1);
  absl::zipf_distribution<uint64_t> skewed(sizes.rows - 1, sizes.zipf);
  auto gradients = RowGradients(sizes.batch, 1);
  if (!gradients.ok()) return gradients.status();
  for (size_t i = 0; i < kBatches; ++i) {
    std::vector<uint64_t> ids(sizes.batch);
    for (uint64_t& id : ids) {
      id = ps::Mix(is_skewed ? skewed(random) : uniform(random));
    }
    ps::PullSpec pull;
    pull.all_dense = false;
    pull.rows.push_back({kSparseTable, ids});
    pulls_.push_back(std::move(pull));
    pushes_.push_back(RowsOf(std::move(ids), *gradients));
  }
  return absl::OkStatus();
}

absl::StatusOr<tensor::Bundle> Workload::FirstValues() const {
  tensor::Bundle values;
  for (const ps::TableSpec& table : model_.tables) {
    if (!table.is_dense()) continue;
    auto value = Filled(absl::get<ps::DenseSpec>(table.rows).shape, 0);
    if (!value.ok()) return value.status();
    values.tensors.push_back({table.name, *std::move(value)});
  }
  return values;
}

}  // namespace penstock::bench
