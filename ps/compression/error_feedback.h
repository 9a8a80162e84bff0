// Keeps the part of gradients that was not sent yet.

#ifndef PENSTOCK_PS_COMPRESSION_ERROR_FEEDBACK_H_
#define PENSTOCK_PS_COMPRESSION_ERROR_FEEDBACK_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ps/optim/gradient.h"
#include "ps/optim/workers.h"
#include "tensor_service/tensor.h"

namespace penstock::ps::compression {

// The residual of error feedback: an f32 per element, on the heap. For each
// element, the sum of all values taken plus the residual equals the sum of all
// values added, except for f32's rounding of the additions. Use from one thread
// at a time.
class ErrorFeedback {
 public:
  // Creates a residual of zeros. Returns RESOURCE_EXHAUSTED if memory cannot be
  // allocated.
  static absl::StatusOr<ErrorFeedback> Create(size_t count);

  absl::Span<const float> values() const { return {data(), count_}; }

  // Adds a gradient with the same number of elements. The gradient must have
  // passed CheckGradient().
  void Add(const optim::GradientView& gradient, const optim::Workers& workers);

  // Moves the elements at distinct `indices` to `to`, which is f32, f16 or
  // bf16. Keeps the rounding error here. Also keeps excess that a server would
  // refuse: beyond 65504 for f16, beyond optim::kMostInF32 for others.
  void Take(absl::Span<const int32_t> indices, tensor::DType dtype, void* to,
            const optim::Workers& workers);

  // Adds finite `values` to the elements at distinct `indices`. The memory of
  // both tensors may be unaligned. Directly after Take(), with the elements
  // that were taken, restores the earlier state bit by bit. Exceptions: the
  // sign of a 0, and elements that exceeded the limit of Take().
  void PutBack(const tensor::Tensor& indices, const tensor::Tensor& values,
               const optim::Workers& workers);

 private:
  ErrorFeedback(tensor::Tensor memory, size_t count)
      : memory_(std::move(memory)), count_(count) {}

  const float* data() const {
    return reinterpret_cast<const float*>(memory_.buffer()->data());
  }
  float* data() {
    return reinterpret_cast<float*>(memory_.buffer()->mutable_data());
  }

  // The residual, in whole pieces, so that the memory can also serve as an
  // optim::Scratch.
  tensor::Tensor memory_;
  size_t count_;
};

}  // namespace penstock::ps::compression

#endif  // PENSTOCK_PS_COMPRESSION_ERROR_FEEDBACK_H_
