// How a gradient changes a variable.

#ifndef PENSTOCK_PS_OPTIMIZER_H_
#define PENSTOCK_PS_OPTIMIZER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// A rule for training. Keeps whatever state it needs for each variable, by
// name, from the first Apply() with that name on.
//
// Apply() is called by one thread at a time. Supports() may be called by any
// thread at any time.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Returns INVALID_ARGUMENT if the rule cannot train a variable of that type.
  virtual absl::Status Supports(tensor::DType dtype) const = 0;

  // Changes the variable `name` by the mean gradient of one step. `gradient` is
  // aligned and has the variable's type and shape. Leaves `variable` unchanged
  // on an error.
  virtual absl::Status Apply(const std::string& name,
                             const tensor::Tensor& gradient,
                             tensor::Tensor* variable) = 0;
};

// Makes plain stochastic gradient descent: variable -= learning_rate *
// gradient, in the variable's own precision, for f32 and f64. Returns
// INVALID_ARGUMENT unless `learning_rate` is finite and positive.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeSgd(double learning_rate);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_OPTIMIZER_H_
