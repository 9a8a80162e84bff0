#include "bench/tensors/models.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace penstock::bench {
namespace {

absl::StatusOr<Variable> ParseVariable(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, ' ', absl::SkipEmpty());
  Variable variable;
  variable.name = std::string(words.front());
  for (size_t i = 1; i < words.size(); ++i) {
    int64_t dimension;
    if (!absl::SimpleAtoi(words[i], &dimension) || dimension <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("model: no dimension in \"", line, "\": ", words[i]));
    }
    variable.shape.push_back(dimension);
  }
  return variable;
}

size_t Elements(const Variable& variable) {
  size_t elements = 1;
  for (int64_t dimension : variable.shape) elements *= dimension;
  return elements;
}

}  // namespace

size_t Model::byte_size() const {
  size_t bytes = 0;
  for (const Variable& variable : variables) {
    bytes += Elements(variable) * sizeof(float);
  }
  return bytes;
}

absl::StatusOr<Model> ParseModel(absl::string_view name,
                                 absl::string_view text) {
  Model model;
  model.name = std::string(name);
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "#")) continue;
    if (line.find_first_not_of(' ') == absl::string_view::npos) continue;
    absl::StatusOr<Variable> variable = ParseVariable(line);
    if (!variable.ok()) return variable.status();
    model.variables.push_back(*std::move(variable));
  }
  return model;
}

absl::StatusOr<Model> FindModel(absl::string_view name) {
  for (const EmbeddedModel& model : EmbeddedModels()) {
    if (model.name == name) return ParseModel(model.name, model.text);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "no model \"", name, "\"; there are ",
      absl::StrJoin(EmbeddedModels(), ", ",
                    [](std::string* out, const EmbeddedModel& model) {
                      absl::StrAppend(out, model.name);
                    })));
}

absl::StatusOr<tensor::Bundle> MakeVariables(const Model& model,
                                             tensor::Allocator* allocator) {
  tensor::Bundle bundle;
  uint32_t state = 1;
  for (const Variable& variable : model.variables) {
    auto tensor = tensor::Tensor::Allocate(tensor::DType::kF32, variable.shape,
                                           allocator);
    if (!tensor.ok()) return tensor.status();
    auto* const words =
        reinterpret_cast<uint32_t*>(tensor->buffer()->mutable_data());
    for (size_t i = 0; i < Elements(variable); ++i) {
      // Draw the next number with the generator of Numerical Recipes.
      state = state * 1664525 + 1013904223;
      words[i] = state;
    }
    bundle.tensors.push_back({variable.name, *std::move(tensor)});
  }
  return bundle;
}

}  // namespace penstock::bench
