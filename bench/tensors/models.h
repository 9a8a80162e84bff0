// The variables of real models, by shape. The files in models/ name their
// sources.

#ifndef PENSTOCK_BENCH_TENSORS_MODELS_H_
#define PENSTOCK_BENCH_TENSORS_MODELS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensor_service/allocator.h"
#include "tensor_service/tensor.h"

namespace penstock::bench {

struct EmbeddedModel {
  absl::string_view name;
  absl::string_view text;
};

// Returns the files of models/, the smallest model first.
const std::vector<EmbeddedModel>& EmbeddedModels();

struct Variable {
  std::string name;
  tensor::Shape shape;  // of f32
};

struct Model {
  std::string name;
  std::vector<Variable> variables;

  size_t byte_size() const;
};

// Parses a file of models/, with a name and its dimensions per line. Lines that
// begin with '#' are comments. The error names the line.
absl::StatusOr<Model> ParseModel(absl::string_view name,
                                 absl::string_view text);

// Returns the embedded model with this name. The error lists all names.
absl::StatusOr<Model> FindModel(absl::string_view name);

// Makes the variables in memory of `allocator`, with every byte written and
// different contents in each variable. Returns the allocator's errors.
absl::StatusOr<tensor::Bundle> MakeVariables(const Model& model,
                                             tensor::Allocator* allocator);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_MODELS_H_
