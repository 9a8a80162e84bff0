// Makes parts for tests, from vectors of numbers.

#ifndef PENSTOCK_TESTS_PS_DENSE_PARTS_H_
#define PENSTOCK_TESTS_PS_DENSE_PARTS_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "ps/dense/dense_part.h"
#include "ps/optim/rule.h"
#include "ps/optim/workers.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// Returns two threads, which all parts share.
const optim::Workers& Threads();

// Returns the options of a part "layer/kernel[0:3]" with learning rate 0.25.
DensePart::Options OptionsOf(optim::Rule rule, double momentum = 0.5);

tensor::Tensor F32(const std::vector<float>& elements);
std::vector<float> Elements(const tensor::Tensor& tensor);

std::unique_ptr<DensePart> NewPart(optim::Rule rule,
                                   const tensor::Tensor& value);

absl::Status Step(DensePart* part, std::vector<tensor::Tensor> gradients);

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_DENSE_PARTS_H_
