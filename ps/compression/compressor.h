// What a worker does with the gradients of one variable before it pushes them.

#ifndef PENSTOCK_PS_COMPRESSION_COMPRESSOR_H_
#define PENSTOCK_PS_COMPRESSION_COMPRESSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ps/compression/error_feedback.h"
#include "ps/optim/workers.h"
#include "ps/random/philox.h"
#include "tensor_service/allocator.h"
#include "tensor_service/tensor.h"

namespace penstock::ps::compression {

// How the gradients of a variable are compressed.
//
// clang-format off
//   Kind      Sends                                   Error feedback
//   kNone     the gradient as it is                   -
//   kHalf     each element, rounded to `dtype`        none: the error is small
//   kTopK     the k elements of greatest magnitude    yes
//   kRandomK  k elements, each k equally likely       yes
//   kInt8     each element, rounded at random         none: the error's mean is 0
// clang-format on
//
// With error feedback, what is not sent is kept and added to the next gradient
// (A. Aji, K. Heafield, "Sparse Communication for Distributed Gradient
// Descent", EMNLP 2017; S. Stich et al., "Sparsified SGD with Memory", NeurIPS
// 2018, prove that SGD then converges as it does without compression). Elements
// of kRandomK are sent as they are, not times n / k: that would be for an
// unbiased estimate without memory, whose variance is n / k times as large.
// Here what is left out comes later, and scaling would apply it n / k times.
struct CompressionSpec {
  enum class Kind { kNone, kHalf, kTopK, kRandomK, kInt8 };

  Kind kind = Kind::kNone;
  // kHalf: f16 or bf16. kTopK and kRandomK: of the values that are sent, f32,
  // f16 or bf16; what rounding leaves is fed back, too.
  tensor::DType dtype = tensor::DType::kBF16;
  // kTopK and kRandomK: of n elements, ceil(ratio * n) are sent. Above 0, and
  // at most 1.
  double ratio = 0.01;
  // kRandomK and kInt8. Workers that share it choose the same elements, and
  // round by the same numbers: with kInt8 give each its own, so that the errors
  // of their mean are independent.
  uint64_t seed = 0;
};

// Compresses the gradients of one variable, or of the part of it that goes to
// one server. What it returns is for Decompress(); lists.h has the forms.
//
// After a lost reply, push the list again that Compress() has returned: it is
// immutable. Compress() itself is not to be called again, as it feeds back.
// When a push is refused or late, so that it will never be applied, call
// GiveBack(): with error feedback, the list has elements of many steps.
//
// The residual lives as long as this object. Where a worker ends, what is in it
// is lost.
//
// One thread at a time.
class Compressor {
 public:
  // Names a variable or a part of it. kRandomK and kInt8 draw numbers for the
  // name. Returns INVALID_ARGUMENT, which has the name, for a spec with a wrong
  // number or type, and for a shape of more elements than int32 can count if
  // the kind sends indices; and RESOURCE_EXHAUSTED if there is no memory for
  // the residual, which is an f32 for each element.
  //
  // `workers` must outlive the compressor. What is sent comes from `allocator`,
  // which must outlive it, too; null is tensor::DefaultAllocator().
  static absl::StatusOr<std::unique_ptr<Compressor>> Create(
      const CompressionSpec& spec, absl::string_view name, tensor::Shape shape,
      const optim::Workers* workers, tensor::Allocator* allocator = nullptr);

  // Compresses the gradient of a step, f32, f64, f16 or bf16. f64 is rounded to
  // f32 first. kRandomK and kInt8 draw numbers for the step: the same spec,
  // name, step, gradients and residual give the same bits on each machine, with
  // any number of threads.
  //
  // Returns INVALID_ARGUMENT for another shape or type, for an element that
  // optim::CheckGradient() refuses (kNone leaves that to the server), and for
  // one beyond 65504 if kHalf is f16; and RESOURCE_EXHAUSTED. Then nothing has
  // changed.
  absl::StatusOr<std::vector<tensor::Tensor>> Compress(
      const tensor::Tensor& gradient, uint64_t step);

  // Adds a list that Compress() has returned, and that no server has applied or
  // will apply, to the residual again; it then comes with later gradients. Call
  // it once for a list. Kinds without error feedback forget the list, as a
  // training without compression forgets a gradient that came too late. Returns
  // INVALID_ARGUMENT for a list that is none of this kind.
  absl::Status GiveBack(absl::Span<const tensor::Tensor> list);

  // Returns what is kept for later; empty without error feedback.
  absl::Span<const float> residual() const;

 private:
  using Tensors = std::vector<tensor::Tensor>;

  Compressor(const CompressionSpec& spec, absl::string_view name,
             tensor::Shape shape, size_t count, const optim::Workers* workers,
             tensor::Allocator* allocator);

  size_t k() const;
  absl::Status Check(const tensor::Tensor& gradient) const;
  absl::StatusOr<Tensors> Halve(const tensor::Tensor& gradient) const;
  absl::StatusOr<Tensors> Sparsify(const tensor::Tensor& gradient,
                                   uint64_t step);
  absl::StatusOr<Tensors> Quantize(const tensor::Tensor& gradient,
                                   uint64_t step) const;
  absl::Status Named(const absl::Status& status) const;

  const CompressionSpec spec_;
  const std::string name_;
  const tensor::Shape shape_;
  const size_t count_;
  const PhiloxKey key_;
  const optim::Workers* const workers_;
  tensor::Allocator* const allocator_;
  std::optional<ErrorFeedback> residual_;  // of kTopK and kRandomK
};

}  // namespace penstock::ps::compression

#endif  // PENSTOCK_PS_COMPRESSION_COMPRESSOR_H_
