// Computes logistic regression on sparse binary features, and quality measures.

#ifndef PENSTOCK_EXAMPLES_INCOME_LOGISTIC_H_
#define PENSTOCK_EXAMPLES_INCOME_LOGISTIC_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "examples/income/dataset.h"

namespace penstock::income {

// Returns the concatenated features of all examples.
std::vector<uint64_t> FeaturesOf(absl::Span<const Example> examples);

// Returns, for each example, the probability that its label is 1. `weights` are
// in the order of FeaturesOf(examples).
std::vector<float> Predict(absl::Span<const Example> examples,
                           absl::Span<const float> weights);

// Returns the gradient of the sum of the examples' log losses, in the order of
// FeaturesOf(examples). A feature of several examples has several gradients,
// which the caller must add.
std::vector<float> Gradients(absl::Span<const Example> examples,
                             absl::Span<const float> predicted);

// Returns the mean log loss, in nats.
double LogLoss(absl::Span<const Example> examples,
               absl::Span<const float> predicted);

// Returns the area under the ROC curve: the probability that an example of
// label 1 has a higher prediction than one of label 0. Equal predictions count
// half. Both labels must occur.
double Auc(absl::Span<const Example> examples,
           absl::Span<const float> predicted);

}  // namespace penstock::income

#endif  // PENSTOCK_EXAMPLES_INCOME_LOGISTIC_H_
