// The checks of pushes on arrival, and the steps that apply pushes later.

#include <algorithm>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "ps/optim/gradient.h"
#include "ps/server/row_step.h"
#include "ps/server/row_tensors.h"
#include "ps/server/tables.h"
#include "ps/sparse/deduplicate.h"

namespace penstock::ps {
namespace {

using NamedTensors = absl::Span<const tensor::NamedTensor>;

// Returns the first tensors of `tensors` that have the same name as the first
// one.
NamedTensors FirstOfOneName(NamedTensors tensors) {
  size_t some = 1;
  while (some < tensors.size() && tensors[some].name == tensors[0].name) ++some;
  return tensors.subspan(0, some);
}

absl::Status Repeated(absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat("variable ", Shown(name), ": it is in the push twice"));
}

// Returns a function that runs tasks on `workers`. Valid during one call.
auto RunOn(const optim::Workers& workers) {
  return [&workers](size_t tasks, absl::FunctionRef<void(size_t)> task) {
    workers.ForEach(tasks, task);
  };
}

// Checks that all elements are finite. `what` names the values in the message.
absl::Status CheckElements(absl::string_view table, absl::string_view what,
                           const tensor::Tensor& values, size_t dim,
                           const optim::Workers& workers) {
  absl::Status status = optim::CheckGradient(
      {tensor::DType::kF32, values.bytes().data(), values.num_elements()},
      tensor::DType::kF32, workers);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("table ", Shown(table), ": ", what, status.message(),
                   "; an id has ", dim, " elements", optim::kSmallerGradients));
}

// Returns the gradients of a table with each id once. Adds up the gradients of
// repeated ids.
absl::StatusOr<RowGradients> OnceEach(absl::Span<const uint64_t> ids,
                                      tensor::Tensor values, size_t dim,
                                      const sparse::HashKey& hash) {
  RowGradients gradients;
  sparse::Unique unique = sparse::FindUnique(ids, hash);
  if (unique.ids.size() == ids.size()) {
    gradients.values = std::move(values);
  } else {
    auto sums = tensor::Tensor::Allocate(
        tensor::DType::kF32,
        {static_cast<int64_t>(unique.ids.size()), static_cast<int64_t>(dim)},
        tensor::HeapAllocator());
    if (!sums.ok()) return sums.status();
    auto* const to = reinterpret_cast<float*>(sums->buffer()->mutable_data());
    sparse::SumRows(unique, FloatsOf(values), dim,
                    absl::MakeSpan(to, sums->num_elements()));
    gradients.values = *std::move(sums);
  }
  gradients.ids = std::move(unique.ids);
  return gradients;
}

// Returns the gradients of the pushes for one table.
std::vector<RowGradients*> OfTable(size_t rows,
                                   absl::Span<Gradients* const> pushes) {
  std::vector<RowGradients*> all;
  for (Gradients* push : pushes) {
    for (RowGradients& each : push->rows) {
      if (each.rows == rows) all.push_back(&each);
    }
  }
  return all;
}

}  // namespace

absl::StatusOr<Gradients> Tables::Check(const tensor::Bundle& push,
                                        absl::Time now) {
  Gradients gradients;
  std::vector<bool> has_part(parts().size());
  std::vector<bool> has_rows(sparse_.size());
  NamedTensors left = push.tensors;
  while (!left.empty()) {
    const NamedTensors named = FirstOfOneName(left);
    left.remove_prefix(named.size());
    const std::string& name = named[0].name;
    const absl::optional<size_t> part = dense_->IndexOf(name);
    if (part.has_value()) {
      if (has_part[*part]) return Repeated(name);
      has_part[*part] = true;
      auto dense = dense_->Check(*part, named);
      if (!dense.ok()) return dense.status();
      gradients.dense.push_back(*std::move(dense));
      continue;
    }
    const auto rows = model_.FindRows(name);
    if (!rows.ok()) return rows.status();
    if (has_rows[*rows]) return Repeated(name);
    has_rows[*rows] = true;
    auto sparse = CheckRows(*rows, named, now);
    if (!sparse.ok()) return sparse.status();
    gradients.rows.push_back(*std::move(sparse));
  }
  return gradients;
}

absl::StatusOr<RowGradients> Tables::CheckRows(size_t rows, NamedTensors named,
                                               absl::Time now) {
  sparse::Table& table = *sparse_[rows].table;
  const size_t dim = table.options().dim;
  if (named.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("table ", Shown(named[0].name),
                     ": wanted ids and their gradients, there are ",
                     named.size(), " tensors"));
  }
  auto ids = IdsIn(named[0]);
  if (!ids.ok()) return ids.status();
  auto values = RowsIn(named[1], ids->size(), dim);
  if (!values.ok()) return values.status();
  absl::Status here = CheckIds(rows, *ids);
  if (!here.ok()) return here;
  absl::Status finite =
      CheckElements(named[0].name, "", *values, dim, workers_);
  if (!finite.ok()) return finite;
  auto gradients = OnceEach(*ids, *std::move(values), dim, table.hash());
  if (!gradients.ok()) return gradients;
  if (gradients->ids.size() < ids->size()) {
    finite = CheckElements(named[0].name, "of the sums of ids that repeat, ",
                           gradients->values, dim, workers_);
    if (!finite.ok()) return finite;
  }
  gradients->rows = rows;
  auto reserved = table.Reserve(gradients->ids, now, RunOn(workers_));
  if (!reserved.ok()) return reserved.status();
  gradients->reserved = *std::move(reserved);
  return gradients;
}

absl::Status Tables::Apply(size_t policy, absl::Span<Gradients* const> pushes,
                           absl::Time now) {
  // Allocates everything that the steps need before any step begins, because
  // allocation may fail. The rows already have their memory.
  std::vector<std::pair<size_t, RowStep>> steps;
  for (size_t rows = 0; rows < sparse_.size(); ++rows) {
    if (model_.rows()[rows].policy != policy) continue;
    std::vector<RowGradients*> all = OfTable(rows, pushes);
    if (all.empty()) continue;
    auto step = RowStep::MeanOf(std::move(all), table(rows).options().dim,
                                table(rows).hash());
    if (!step.ok()) {
      return absl::Status(
          step.status().code(),
          absl::StrCat("table ",
                       Shown(model_.table(model_.rows()[rows].table).name),
                       ": ", step.status().message()));
    }
    steps.emplace_back(rows, *std::move(step));
  }
  absl::Status status = dense_->Apply(policy, pushes);
  for (size_t i = 0; status.ok() && i < steps.size(); ++i) {
    status = ApplyRows(steps[i].first, std::move(steps[i].second), now);
  }
  return status;
}

absl::Status Tables::ApplyRows(size_t rows, RowStep mean, absl::Time now) {
  SparseTable& sparse = sparse_[rows];
  const size_t dim = sparse.table->options().dim;
  const size_t slots = sparse.table->options().slots();
  const optim::Optimizer& optimizer = *sparse.optimizer;
  const optim::Scalars scalars = optimizer.ScalarsOf(sparse.steps + 1);
  const auto step = [&](const float* gradient, float* value, float* first) {
    float* slot[optim::kMostSlots] = {};
    for (size_t i = 0; i < slots; ++i) slot[i] = first + i * dim;
    optimizer.Apply(scalars, gradient, value, value, slot, dim);
  };
  ++sparse.steps;
  // Ignores the status: the sizes fit and there is room, so this call fails
  // only if a disk fails. The table counts dropped gradients.
  return sparse.table
      ->Push(mean.ids(), mean.values(), now, step, mean.TakeReserved(),
             RunOn(workers_))
      .status();
}

}  // namespace penstock::ps
