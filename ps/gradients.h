// Checks and averages the gradients that workers have sent.

#ifndef PENSTOCK_PS_GRADIENTS_H_
#define PENSTOCK_PS_GRADIENTS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// Returns INVALID_ARGUMENT if an element of an f32 or f64 tensor is infinite or
// NaN. The message has the index and value of the first. Accepts tensors of
// every other type: Optimizer::Supports() refuses those that cannot be trained.
// Needs `gradient` to be aligned.
absl::Status CheckFinite(const tensor::Tensor& gradient);

// Returns the element-wise mean. Sums in the order given, so the same inputs
// give the same bits. A single input is returned as it is, without a copy.
// Returns INVALID_ARGUMENT unless all inputs have one shape and one type, f32
// or f64, and for no inputs. Needs them to be aligned.
absl::StatusOr<tensor::Tensor> Mean(absl::Span<const tensor::Tensor> inputs);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_GRADIENTS_H_
