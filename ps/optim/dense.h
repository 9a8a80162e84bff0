// Steps of dense values, over all cores.

#ifndef PENSTOCK_PS_OPTIM_DENSE_H_
#define PENSTOCK_PS_OPTIM_DENSE_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ps/optim/gradient.h"
#include "ps/optim/optimizer.h"
#include "ps/optim/workers.h"
#include "tensor_service/dtype.h"

namespace penstock::ps::optim {

// A slot of a dense value, of as many elements as the value.
struct DenseSlot {
  absl::string_view name;  // lives for ever
  double initial;          // of each element; of "master": the value's own
  tensor::DType dtype;
};

// The name of the slot that holds an f16 or bf16 value in f32. Steps are
// computed on it, as most would be lost in the rounding of so few digits.
inline constexpr absl::string_view kMaster = "master";

// Returns the slots of a value of that type: the optimizer's, f64 for an f64
// value and f32 for others, then for f16 and bf16 "master". Returns none for a
// type that is not trained: CheckTrainable() says why.
std::vector<DenseSlot> DenseSlotsOf(const Optimizer& optimizer,
                                    tensor::DType dtype);

// Returns INVALID_ARGUMENT unless the type is f32, f64, f16 or bf16.
absl::Status CheckTrainable(tensor::DType dtype);

// Writes the first content of a slot. `value` and `slot` have `count` elements,
// of `dtype` and of description.dtype.
void InitializeSlot(const DenseSlot& description, tensor::DType dtype,
                    const void* value, size_t count, void* slot);

// One value's step. All memory is the caller's, has `count` elements and the
// alignment of its type, but for gradients, which need none. All must live
// until ApplyDense() has returned.
struct DenseStep {
  const Optimizer* optimizer = nullptr;
  const Scalars* scalars = nullptr;
  tensor::DType dtype = tensor::DType::kF32;
  size_t count = 0;
  // By the rank of their workers, ascending. Each was checked.
  absl::Span<const GradientView> gradients;
  const void* value = nullptr;    // of an f16 or bf16 value not read
  void* updated = nullptr;        // `value`, or apart from it
  absl::Span<void* const> slots;  // as DenseSlotsOf() has them
};

// Takes all steps: averages each one's gradients and applies the mean, a piece
// that fits into the first-level cache at a time. Threads may read `value`
// meanwhile if `updated` is apart from it; whoever sees the return sees the
// whole of `updated`.
//
// The mean is summed in the order given and divided once, in f64 for an f64
// value and in f32 for others. Same inputs give the same bits on each machine,
// with any number of threads.
//
// Returns INVALID_ARGUMENT, and has changed nothing, if a step has no gradient,
// one of another number of elements, a type that is not trained, or another
// number of slots. The message has the step's index.
absl::Status ApplyDense(absl::Span<const DenseStep> steps,
                        const Workers& workers);

}  // namespace penstock::ps::optim

#endif  // PENSTOCK_PS_OPTIM_DENSE_H_
