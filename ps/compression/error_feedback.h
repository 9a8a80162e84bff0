// What has not been sent of a gradient yet.

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

// The residual of error feedback, in f32 on the heap. Of each element, what was
// taken and what is left is together what was added, to f32's rounding of the
// additions. One thread at a time.
class ErrorFeedback {
 public:
  // Makes a residual of 0. Returns RESOURCE_EXHAUSTED if there is no memory.
  static absl::StatusOr<ErrorFeedback> Create(size_t count);

  absl::Span<const float> values() const { return {data(), count_}; }

  // Adds a gradient of as many elements, which has passed CheckGradient().
  void Add(const optim::GradientView& gradient, const optim::Workers& workers);

  // Moves the elements at `indices`, none of them twice, to `to`, which is
  // f32, f16 or bf16. What rounding to that type leaves stays here; so does
  // what is beyond 65504 for f16, and beyond optim::kMostInF32 for the others,
  // for a server would refuse that.
  void Take(absl::Span<const int32_t> indices, tensor::DType dtype, void* to,
            const optim::Workers& workers);

  // Adds finite elements at `indices`, none of them twice. Neither need be
  // aligned. Right after Take() everything is as it was before, to the last
  // bit, but for the sign of a 0 and for what was beyond the limit.
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

  tensor::Tensor memory_;  // whole pieces, each as good as an optim::Scratch
  size_t count_;
};

}  // namespace penstock::ps::compression

#endif  // PENSTOCK_PS_COMPRESSION_ERROR_FEEDBACK_H_
