// The variables of real models, by shape: data, in models/, with its source.

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

// Returns the files of models/, smallest model first.
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

// Reads a file of models/: a name and its dimensions a line; lines that begin
// with '#' are comments. The error names the line.
absl::StatusOr<Model> ParseModel(absl::string_view name,
                                 absl::string_view text);

// Returns the embedded model of that name. The error names those that there
// are.
absl::StatusOr<Model> FindModel(absl::string_view name);

// Makes the variables in memory of `allocator`, with every byte written, and
// none of them alike in two variables. Returns the allocator's errors.
absl::StatusOr<tensor::Bundle> MakeVariables(const Model& model,
                                             tensor::Allocator* allocator);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_MODELS_H_
