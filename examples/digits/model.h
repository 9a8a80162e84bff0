// A small network for digits with two hidden layers, implemented with Eigen.

#ifndef PENSTOCK_EXAMPLES_DIGITS_MODEL_H_
#define PENSTOCK_EXAMPLES_DIGITS_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/digits/dataset.h"
#include "ps/model/model.h"
#include "tensor_service/tensor.h"

namespace penstock::digits {

// Returns the variables of the network: 64 pixels -> `hidden` relu -> `hidden`
// relu -> 10 logits, softmax and cross entropy. They are f32, in this order:
//
//   w1 [64,hidden] b1 [hidden] w2 [hidden,hidden] b2 [hidden]
//   w3 [hidden,10] b3 [10]
struct Variable {
  std::string name;
  tensor::Shape shape;
};
std::vector<Variable> Variables(int64_t hidden);

// The training parameters for plain gradient descent.
struct TrainingOptions {
  double learning_rate = 0.4;  // README.md explains the choice
  // Limits the number of steps by which a worker may be ahead of the slowest. 0
  // trains synchronously, and ps::ConsistencyPolicy::kUnlimited asynchronously.
  int64_t staleness = 0;
};

// Returns a model for parameter servers whose tables are the network's
// variables.
ps::Model ModelOf(int64_t hidden, const TrainingOptions& options);

// Returns random first values of the variables. Weights are normally
// distributed with variance 2 / inputs (K. He et al., "Delving Deep into
// Rectifiers", 2015). Biases are zero. The same seed gives the same bits.
absl::StatusOr<tensor::Bundle> InitialValues(int64_t hidden, uint32_t seed);

struct Gradients {
  float loss;  // mean cross entropy of the batch, nats
  tensor::Bundle bundle;
};

// Returns the gradients of the mean loss over `batch`, in the order of
// Variables(). Returns INVALID_ARGUMENT if `variables` do not have the form of
// Variables().
absl::StatusOr<Gradients> ComputeGradients(const tensor::Bundle& variables,
                                           const Images& batch);

// Returns the fraction of `images` that the network classifies correctly.
absl::StatusOr<double> Accuracy(const tensor::Bundle& variables,
                                const Images& images);

}  // namespace penstock::digits

#endif  // PENSTOCK_EXAMPLES_DIGITS_MODEL_H_
