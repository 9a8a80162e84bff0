// Arithmetic on gradients that workers have sent.

#ifndef PENSTOCK_PS_GRADIENTS_H_
#define PENSTOCK_PS_GRADIENTS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// INVALID_ARGUMENT, with the index and the value, at the first element of an
// f32 or f64 tensor that is not finite; other types are finite by nature or
// refused elsewhere. `gradient` must be aligned.
absl::Status CheckFinite(const tensor::Tensor& gradient);

// The element-wise mean, summed in the order given, so that the same inputs
// give the same bits. All must be aligned and of one shape and type, f32 or
// f64. A single input is returned as it is, without a copy.
absl::StatusOr<tensor::Tensor> Mean(absl::Span<const tensor::Tensor> inputs);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_GRADIENTS_H_
