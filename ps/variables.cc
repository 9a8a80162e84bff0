#include "ps/variables.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/gradients.h"

namespace penstock::ps {
namespace {

absl::Status Refuse(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("variable ", name, ": ", what));
}

// Returns the tensor, copied if it is not aligned. Refuses it, as the `what` of
// variable `name`, if an element is not finite.
absl::StatusOr<tensor::Tensor> FiniteAndAligned(const std::string& name,
                                                const char* what,
                                                const tensor::Tensor& tensor) {
  absl::StatusOr<tensor::Tensor> aligned = tensor.Aligned();
  if (!aligned.ok()) return aligned.status();
  absl::Status finite = CheckFinite(*aligned);
  if (!finite.ok()) {
    return Refuse(
        name, absl::StrCat("its ", what, " is not finite: ", finite.message()));
  }
  return aligned;
}

absl::StatusOr<tensor::Tensor> CheckOne(const VariableSpec& spec,
                                        const tensor::Tensor& gradient) {
  if (gradient.dtype() != spec.dtype || gradient.shape() != spec.shape) {
    return Refuse(spec.name,
                  absl::StrCat("its gradient is ", gradient.ToString(),
                               ", it is ", Describe(spec.dtype, spec.shape)));
  }
  return FiniteAndAligned(spec.name, "gradient", gradient);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const VariableTable>> VariableTable::Create(
    const tensor::Bundle& values, const Optimizer& optimizer) {
  std::shared_ptr<VariableTable> table(new VariableTable);
  for (const tensor::NamedTensor& value : values.tensors) {
    if (value.name.empty()) return Refuse("''", "it has no name");
    absl::Status supported = optimizer.Supports(value.tensor.dtype());
    if (!supported.ok()) return Refuse(value.name, supported.message());
    auto finite = FiniteAndAligned(value.name, "first value", value.tensor);
    if (!finite.ok()) return finite.status();
    if (!table->index_.emplace(value.name, table->specs_.size()).second) {
      return Refuse(value.name, "it comes twice");
    }
    table->specs_.push_back(
        {value.name, value.tensor.dtype(), value.tensor.shape()});
    table->byte_size_ += value.tensor.byte_size();
    table->held_bytes_ +=
        kEntryBytes + 2 * value.name.size() + value.tensor.held_bytes();
  }
  return std::shared_ptr<const VariableTable>(std::move(table));
}

absl::StatusOr<GradientSet> VariableTable::Check(
    const tensor::Bundle& gradients) const {
  GradientSet set(specs_.size());
  std::vector<bool> seen(specs_.size(), false);
  for (const tensor::NamedTensor& gradient : gradients.tensors) {
    auto found = index_.find(gradient.name);
    if (found == index_.end()) {
      return Refuse(gradient.name, "this server does not hold it");
    }
    size_t at = found->second;
    if (seen[at]) return Refuse(gradient.name, "it comes twice");
    seen[at] = true;
    absl::StatusOr<tensor::Tensor> checked =
        CheckOne(specs_[at], gradient.tensor);
    if (!checked.ok()) return checked.status();
    set[at] = *std::move(checked);
  }
  for (size_t at = 0; at < seen.size(); ++at) {
    if (!seen[at]) return Refuse(specs_[at].name, "its gradient is missing");
  }
  return set;
}

absl::StatusOr<std::vector<size_t>> VariableTable::Find(
    absl::Span<const std::string> names) const {
  std::vector<size_t> positions;
  if (names.empty()) {
    for (size_t at = 0; at < specs_.size(); ++at) positions.push_back(at);
  }
  for (const std::string& name : names) {
    auto found = index_.find(name);
    if (found == index_.end()) {
      return absl::NotFoundError(
          absl::StrCat("variable ", name, ": this server does not hold it"));
    }
    positions.push_back(found->second);
  }
  return positions;
}

absl::Status ApplyStep(const VariableTable& table,
                       absl::Span<const GradientSet> sets, Optimizer* optimizer,
                       std::vector<tensor::Tensor>* values) {
  for (size_t at = 0; at < values->size(); ++at) {
    std::vector<tensor::Tensor> inputs;
    for (const GradientSet& set : sets) inputs.push_back(set[at]);
    absl::StatusOr<tensor::Tensor> mean = Mean(inputs);
    if (!mean.ok()) return mean.status();
    absl::Status applied =
        optimizer->Apply(table.specs()[at].name, *mean, &(*values)[at]);
    if (!applied.ok()) return applied;
  }
  return absl::OkStatus();
}

}  // namespace penstock::ps
