// A small network for digits: two hidden layers, by hand, on Eigen.

#ifndef PENSTOCK_EXAMPLES_DIGITS_MODEL_H_
#define PENSTOCK_EXAMPLES_DIGITS_MODEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/digits/dataset.h"
#include "ps/placement.h"
#include "tensor_service/tensor.h"

namespace penstock::digits {

// 64 pixels -> `hidden` relu -> `hidden` relu -> 10 logits, softmax and cross
// entropy. The variables, f32, in this order:
//   w1 [64,hidden] b1 [hidden] w2 [hidden,hidden] b2 [hidden]
//   w3 [hidden,10] b3 [10]
std::vector<ps::VariableSpec> Variables(int64_t hidden);

// Weights drawn as by K. He et al., "Delving Deep into Rectifiers", 2015:
// normal, variance 2 / inputs; biases zero. The same seed gives the same bits.
absl::StatusOr<tensor::Bundle> InitialValues(int64_t hidden, uint32_t seed);

struct Gradients {
  float loss;  // mean cross entropy of the batch, nats
  tensor::Bundle bundle;
};

// Of the mean loss over `batch` by each variable, in the order of Variables().
// INVALID_ARGUMENT where `variables` are not of that form.
absl::StatusOr<Gradients> ComputeGradients(const tensor::Bundle& variables,
                                           const Images& batch);

// The share of `images` that the network classifies rightly, 0 to 1.
absl::StatusOr<double> Accuracy(const tensor::Bundle& variables,
                                const Images& images);

}  // namespace penstock::digits

#endif  // PENSTOCK_EXAMPLES_DIGITS_MODEL_H_
