// How a gradient changes a variable.

#ifndef PENSTOCK_PS_OPTIMIZER_H_
#define PENSTOCK_PS_OPTIMIZER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// Holds whatever state its rule needs for each variable, by name; variables
// appear with the first Apply. Apply is called by one thread at a time;
// Supports may be called beside it.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // INVALID_ARGUMENT where the rule cannot train a variable of that type.
  virtual absl::Status Supports(tensor::DType dtype) const = 0;

  // Changes `variable`, called `name`, by the mean gradient of one step, which
  // has its type and shape and is aligned. On an error it is unchanged.
  virtual absl::Status Apply(const std::string& name,
                             const tensor::Tensor& gradient,
                             tensor::Tensor* variable) = 0;
};

// Plain stochastic gradient descent: variable -= learning_rate * gradient, in
// the variable's own precision. f32 and f64. INVALID_ARGUMENT unless the rate
// is finite and positive.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeSgd(double learning_rate);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_OPTIMIZER_H_
