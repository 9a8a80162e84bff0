#include "tests/ps/dense/parts.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "ps/optim/optimizer.h"

namespace penstock::ps {

using optim::OptimizerConfig;
using optim::Rule;
using tensor::Tensor;

const optim::Workers& Threads() {
  static const auto* const workers = new optim::Workers(2);
  return *workers;
}

DensePart::Options OptionsOf(Rule rule, double momentum) {
  OptimizerConfig config;
  config.rule = rule;
  config.schedule.learning_rate = 0.25;
  config.momentum = momentum;
  DensePart::Options options;
  options.name = "layer/kernel[0:3]";
  options.optimizer = *optim::Optimizer::Create(config);
  options.workers = &Threads();
  return options;
}

Tensor F32(const std::vector<float>& elements) {
  return *Tensor::Of<float>({static_cast<int64_t>(elements.size())}, elements);
}

std::unique_ptr<DensePart> NewPart(Rule rule, const Tensor& value) {
  auto part = DensePart::Create(OptionsOf(rule), value);
  EXPECT_TRUE(part.ok()) << part.status();
  return *std::move(part);
}

std::vector<float> Elements(const Tensor& tensor) {
  const absl::Span<const float> elements = *tensor.flat<float>();
  return {elements.begin(), elements.end()};
}

absl::Status Step(DensePart* part, std::vector<Tensor> gradients) {
  absl::Mutex* const readers = nullptr;
  return DensePart::Apply({{part, std::move(gradients)}}, Threads(), readers);
}

}  // namespace penstock::ps
