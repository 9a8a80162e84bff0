#include "examples/income/logistic.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace penstock::income {

std::vector<uint64_t> FeaturesOf(absl::Span<const Example> examples) {
  std::vector<uint64_t> all;
  for (const Example& example : examples) {
    all.insert(all.end(), example.features.begin(), example.features.end());
  }
  return all;
}

std::vector<float> Predict(absl::Span<const Example> examples,
                           absl::Span<const float> weights) {
  std::vector<float> predicted;
  predicted.reserve(examples.size());
  const float* weight = weights.data();
  for (const Example& example : examples) {
    float sum = 0;
    for (size_t i = 0; i < example.features.size(); ++i) sum += *weight++;
    predicted.push_back(1 / (1 + std::exp(-sum)));
  }
  return predicted;
}

std::vector<float> Gradients(absl::Span<const Example> examples,
                             absl::Span<const float> predicted) {
  std::vector<float> gradients;
  for (size_t i = 0; i < examples.size(); ++i) {
    gradients.insert(gradients.end(), examples[i].features.size(),
                     predicted[i] - examples[i].label);
  }
  return gradients;
}

double LogLoss(absl::Span<const Example> examples,
               absl::Span<const float> predicted) {
  // The smallest argument of log(). Without it, a prediction that a float
  // rounds to 0 or 1 would give log(0).
  constexpr double kLeast = 1e-9;
  double sum = 0;
  for (size_t i = 0; i < examples.size(); ++i) {
    const double right =
        examples[i].label > 0 ? predicted[i] : 1.0 - predicted[i];
    sum -= std::log(std::max(right, kLeast));
  }
  return sum / static_cast<double>(examples.size());
}

double Auc(absl::Span<const Example> examples,
           absl::Span<const float> predicted) {
  std::vector<std::pair<float, bool>> order;
  order.reserve(examples.size());
  for (size_t i = 0; i < examples.size(); ++i) {
    order.emplace_back(predicted[i], examples[i].label > 0);
  }
  std::sort(order.begin(), order.end());
  double zeros = 0;  // below the current prediction
  double ones = 0;
  double won = 0;
  for (auto at = order.begin(); at != order.end();) {
    double equal[2] = {0, 0};
    const float value = at->first;
    for (; at != order.end() && at->first == value; ++at) ++equal[at->second];
    won += equal[1] * (zeros + equal[0] / 2);
    zeros += equal[0];
    ones += equal[1];
  }
  return won / (zeros * ones);
}

}  // namespace penstock::income
