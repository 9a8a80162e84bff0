// Logistic regression on sparse binary features, and how good it is.

#ifndef PENSTOCK_EXAMPLES_INCOME_LOGISTIC_H_
#define PENSTOCK_EXAMPLES_INCOME_LOGISTIC_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "examples/income/dataset.h"

namespace penstock::income {

// Returns the features of all examples, one example after another.
std::vector<uint64_t> FeaturesOf(absl::Span<const Example> examples);

// Returns the probability that each label is 1. `weights` are those of
// FeaturesOf(examples), in its order.
std::vector<float> Predict(absl::Span<const Example> examples,
                           absl::Span<const float> weights);

// Returns the gradient of the sum of the examples' log losses by each of
// FeaturesOf(examples), in its order. A feature of several examples has one for
// each, which are to be added up.
std::vector<float> Gradients(absl::Span<const Example> examples,
                             absl::Span<const float> predicted);

// Returns the mean log loss, in nats.
double LogLoss(absl::Span<const Example> examples,
               absl::Span<const float> predicted);

// Returns the area under the ROC curve: how probably an example of label 1 is
// predicted above one of label 0, where equal predictions count half. Both
// labels must occur.
double Auc(absl::Span<const Example> examples,
           absl::Span<const float> predicted);

}  // namespace penstock::income

#endif  // PENSTOCK_EXAMPLES_INCOME_LOGISTIC_H_
