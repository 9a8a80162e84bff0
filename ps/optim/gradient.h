// Gradients as they come from workers.

#ifndef PENSTOCK_PS_OPTIM_GRADIENT_H_
#define PENSTOCK_PS_OPTIM_GRADIENT_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ps/optim/workers.h"
#include "tensor_service/dtype.h"

namespace penstock::ps::optim {

// One worker's gradient of a dense value, in row-major order. The memory is the
// caller's and need not be aligned: it may be where it was received. The type
// is f32, f64, f16 or bf16, and need not be the value's.
struct GradientView {
  tensor::DType dtype = tensor::DType::kF32;
  const void* data = nullptr;
  size_t count = 0;
};

struct MutableGradientView {
  tensor::DType dtype = tensor::DType::kF32;
  void* data = nullptr;
  size_t count = 0;
};

// The largest magnitude of an element that trains an f64 value, and any other,
// which is computed in f32. No training makes such; the square of a larger one
// may be infinite, and make a slot useless for ever.
inline constexpr double kMostInF64 = 1e140;
inline constexpr double kMostInF32 = 1e18;

// Returns INVALID_ARGUMENT, which has the index and value of the first such, if
// an element is NaN, infinite, or above kMostInF64 or kMostInF32, or if the
// type is none of the four. `value` is the type of what is to be trained.
//
// For a server, when a gradient comes: the worker that sent it can be told, and
// no other one's step suffers. Reads the gradient once, by all workers.
absl::Status CheckGradient(const GradientView& gradient, tensor::DType value,
                           const Workers& workers);
// What to do about such an element, to be added to that message.
inline constexpr char kSmallerGradients[] =
    "; clip the gradients, or lower the learning rate";

// Scales the gradients, which together are one vector, so that its Euclidean
// norm is at most `max_norm`, but for rounding, and returns the norm that it
// had. Returns INVALID_ARGUMENT, and changes nothing, if `max_norm` is not
// positive and finite, if an element is NaN or infinite - the message names the
// gradient by its index, and the element - or if the norm is.
//
// For a worker, of all its gradients before it pushes: a server has only a part
// of them. Sums squares in f64 in an order of its own, so the same gradients
// give the same bits, whatever the number of threads.
absl::StatusOr<double> ClipByGlobalNorm(
    double max_norm, absl::Span<const MutableGradientView> gradients,
    const Workers& workers);

}  // namespace penstock::ps::optim

#endif  // PENSTOCK_PS_OPTIM_GRADIENT_H_
