// Gradients as received from workers.

#ifndef PENSTOCK_PS_OPTIM_GRADIENT_H_
#define PENSTOCK_PS_OPTIM_GRADIENT_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ps/optim/workers.h"
#include "tensor_service/dtype.h"

namespace penstock::ps::optim {

// One worker's gradient of a dense value, in row-major order. The caller owns
// the memory. The memory may be unaligned, as in a receive buffer. The type is
// f32, f64, f16 or bf16, and may differ from the value's type.
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

// Limits the magnitude of a gradient's element: kMostInF64 for an f64 value,
// kMostInF32 for other values. No useful training reaches these limits. The
// square of a larger element may be infinite and spoil a slot for ever.
inline constexpr double kMostInF64 = 1e140;
inline constexpr double kMostInF32 = 1e18;

// Checks a gradient for a value of type `value`. Returns INVALID_ARGUMENT if
// the gradient has another type than f32, f64, f16 or bf16. Also returns
// INVALID_ARGUMENT if an element is NaN, infinite, or above kMostInF64 or
// kMostInF32. The message has the index and value of the first such element.
//
// A server calls this function for each received gradient, so that only the
// worker with the bad gradient gets the error. Reads the gradient once, on all
// of `workers`.
absl::Status CheckGradient(const GradientView& gradient, tensor::DType value,
                           const Workers& workers);
// The remedy, which callers append to the message of CheckGradient().
inline constexpr char kSmallerGradients[] =
    "; clip the gradients, or lower the learning rate";

// Scales the gradients, as one vector, so that its Euclidean norm is at most
// `max_norm`, except for rounding. Returns the original norm. Returns
// INVALID_ARGUMENT, and changes nothing, if
//
// - `max_norm` is not positive and finite,
// - an element is NaN or infinite; the message has its gradient's index, or
// - the norm is not finite.
//
// Call at a worker, with all its gradients, before the push: each server
// receives only some of the gradients. Sums squares in f64 in a fixed order, so
// the same gradients give the same bits with any number of threads.
absl::StatusOr<double> ClipByGlobalNorm(
    double max_norm, absl::Span<const MutableGradientView> gradients,
    const Workers& workers);

}  // namespace penstock::ps::optim

#endif  // PENSTOCK_PS_OPTIM_GRADIENT_H_
