// The variables that one server holds.

#ifndef PENSTOCK_PS_VARIABLES_H_
#define PENSTOCK_PS_VARIABLES_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ps/optimizer.h"
#include "ps/placement.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// One worker's gradients, in the order of VariableTable's specs.
using GradientSet = std::vector<tensor::Tensor>;

// The names, types and shapes of the variables. Immutable, so any thread may
// check a push against it while a step is being applied.
class VariableTable {
 public:
  // The most that the server holds for a variable beside its value and names.
  static constexpr size_t kEntryBytes = 1024;

  // Makes the table of `values`. Returns INVALID_ARGUMENT, which names the
  // variable, for an empty or repeated name, a type that `optimizer` cannot
  // train, or a value that is not finite.
  static absl::StatusOr<std::shared_ptr<const VariableTable>> Create(
      const tensor::Bundle& values, const Optimizer& optimizer);

  const std::vector<VariableSpec>& specs() const { return specs_; }
  // Returns the bytes of all values' elements.
  size_t byte_size() const { return byte_size_; }
  // Returns how much memory the variables hold: what their values keep from
  // being freed, their names, and kEntryBytes each.
  size_t held_bytes() const { return held_bytes_; }

  // Returns the gradients in the order of specs(), aligned. Copies those that
  // are not. Returns INVALID_ARGUMENT, which names the variable, unless
  // `gradients` has exactly one for each variable, of its type and shape, with
  // finite elements only.
  absl::StatusOr<GradientSet> Check(const tensor::Bundle& gradients) const;

  // Returns the places in specs() of the named variables, or of all, if `names`
  // is empty. Returns NOT_FOUND, which names the first that is not there.
  absl::StatusOr<std::vector<size_t>> Find(
      absl::Span<const std::string> names) const;

 private:
  VariableTable() = default;

  std::vector<VariableSpec> specs_;
  std::map<std::string, size_t> index_;
  size_t byte_size_ = 0;
  size_t held_bytes_ = 0;
};

// Averages the sets, in the order given, and applies the mean to `values`,
// which are in the order of the table. On an error some variables may have
// changed and others not: the caller must not use them any more.
absl::Status ApplyStep(const VariableTable& table,
                       absl::Span<const GradientSet> sets, Optimizer* optimizer,
                       std::vector<tensor::Tensor>* values);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_VARIABLES_H_
