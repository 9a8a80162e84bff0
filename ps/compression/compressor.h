// Compresses a worker's gradients of one variable before the push.

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

// Selects how the gradients of one variable are compressed.
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
// Error feedback keeps the unsent part of a gradient and adds it to the next
// gradient (A. Aji, K. Heafield, "Sparse Communication for Distributed Gradient
// Descent", EMNLP 2017). SGD then converges as it does without compression (S.
// Stich et al., "Sparsified SGD with Memory", NeurIPS 2018). kRandomK sends its
// elements unscaled. Scaling by n / k would give an unbiased estimate if
// nothing were kept, with n / k times the variance. Here the omitted part is
// sent later, and scaling would apply that part n / k times.
struct CompressionSpec {
  enum class Kind { kNone, kHalf, kTopK, kRandomK, kInt8 };

  Kind kind = Kind::kNone;
  // The type of sent values. kHalf: f16 or bf16. kTopK and kRandomK: f32, f16
  // or bf16; rounding errors are fed back, too.
  tensor::DType dtype = tensor::DType::kBF16;
  // The fraction of the elements that kTopK and kRandomK send: ceil(ratio * n)
  // of n. 0 < ratio <= 1.
  double ratio = 0.01;
  // The seed of kRandomK and kInt8. Workers with the same seed choose the same
  // elements and round by the same numbers. With kInt8, give each worker its
  // own seed, so that the errors of their mean are independent.
  uint64_t seed = 0;
};

// A compressor for the gradients of one variable, or of the part of a variable
// that goes to one server. Decompress() reads the result; lists.h defines its
// forms.
//
// After a lost reply, push the same list again: lists are immutable. Do not
// call Compress() again, because this would update the residual. If a push will
// never be applied, call GiveBack(): with error feedback, the list has elements
// of many steps.
//
// The residual lives as long as this object. A worker that ends loses its
// residual.
//
// Use this object on one thread at a time.
class Compressor {
 public:
  // Creates a compressor for the variable, or part of a variable, called
  // `name`. kRandomK and kInt8 derive random numbers from the name. `workers`
  // must outlive the compressor. `allocator` provides the sent memory and must
  // outlive the compressor, too; null is tensor::DefaultAllocator().
  //
  // Returns INVALID_ARGUMENT, with the name, for a spec with a wrong number or
  // type, or a shape with too many elements for int32 indices. Returns
  // RESOURCE_EXHAUSTED if memory for the residual, an f32 per element, cannot
  // be allocated.
  static absl::StatusOr<std::unique_ptr<Compressor>> Create(
      const CompressionSpec& spec, absl::string_view name, tensor::Shape shape,
      const optim::Workers* workers, tensor::Allocator* allocator = nullptr);

  // Compresses the gradient of a step: f32, f64 (rounded to f32 first), f16 or
  // bf16. kRandomK and kInt8 derive random numbers from the step. The same
  // spec, name, step, gradients and residual give the same bits on each
  // machine, with any number of threads.
  //
  // Changes nothing if there is an error. Returns RESOURCE_EXHAUSTED, or
  // INVALID_ARGUMENT for
  //
  // - another shape or type,
  // - an element that optim::CheckGradient() refuses (kNone leaves this check
  //   to the server), or
  // - an element beyond 65504 if kHalf is f16.
  absl::StatusOr<std::vector<tensor::Tensor>> Compress(
      const tensor::Tensor& gradient, uint64_t step);

  // Adds a list that Compress() returned back to the residual, so that later
  // gradients carry its elements. Call at most once for each list, and only if
  // no server has applied the list or will apply it. Kinds without error
  // feedback drop the list, as training
  // without compression drops a late gradient. Returns INVALID_ARGUMENT for a
  // list of another kind.
  absl::Status GiveBack(absl::Span<const tensor::Tensor> list);

  // Returns the residual of error feedback; empty without error feedback.
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
  std::optional<ErrorFeedback> residual_;  // kTopK and kRandomK
};

}  // namespace penstock::ps::compression

#endif  // PENSTOCK_PS_COMPRESSION_COMPRESSOR_H_
