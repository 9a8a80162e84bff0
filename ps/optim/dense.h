// Applies training steps to dense values, on all cores.

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

// A slot of a dense value, with as many elements as the value.
struct DenseSlot {
  absl::string_view name;  // static lifetime
  double initial;          // of each element; "master" copies the value
  tensor::DType dtype;
};

// The name of the slot that holds an f16 or bf16 value in f32. Steps are
// computed on this slot, because rounding to so few digits would lose most of
// them.
inline constexpr absl::string_view kMaster = "master";

// Returns the slots of a value of type `dtype`. The optimizer's slots come
// first: f64 for an f64 value, and f32 for other values. For f16 and bf16,
// "master" follows. Returns no slots for a type that cannot be trained;
// CheckTrainable() returns the reason.
std::vector<DenseSlot> DenseSlotsOf(const Optimizer& optimizer,
                                    tensor::DType dtype);

// Returns OK if the type is f32, f64, f16 or bf16, and INVALID_ARGUMENT
// otherwise.
absl::Status CheckTrainable(tensor::DType dtype);

// Writes the initial content to `slot`. `value` and `slot` have `count`
// elements, of type `dtype` and description.dtype.
void InitializeSlot(const DenseSlot& description, tensor::DType dtype,
                    const void* value, size_t count, void* slot);

// One value's step. The caller owns all memory. Each array has `count` elements
// and its type's alignment; gradients need no alignment. All must live until
// ApplyDense() returns.
struct DenseStep {
  const Optimizer* optimizer = nullptr;
  const Scalars* scalars = nullptr;
  tensor::DType dtype = tensor::DType::kF32;
  size_t count = 0;
  // The gradients, by worker rank, ascending. Each must have passed
  // CheckGradient().
  absl::Span<const GradientView> gradients;
  const void* value = nullptr;    // not read if f16 or bf16
  void* updated = nullptr;        // `value`, or disjoint from it
  absl::Span<void* const> slots;  // in the order of DenseSlotsOf()
};

// Applies all steps: averages the gradients of each step and applies the mean,
// in pieces that fit into the L1 cache. Threads may read `value` meanwhile if
// `updated` is disjoint from it. A thread that sees the return sees all of
// `updated`.
//
// Sums the mean in the given order and divides once. Computes in f64 for an f64
// value, and in f32 for other values. The same inputs give the same bits on
// each machine, with any number of threads.
//
// Returns INVALID_ARGUMENT, with the step's index, and changes nothing, if a
// step has
//
// - no gradient,
// - a gradient with another number of elements,
// - a type that cannot be trained, or
// - another number of slots.
absl::Status ApplyDense(absl::Span<const DenseStep> steps,
                        const Workers& workers);

}  // namespace penstock::ps::optim

#endif  // PENSTOCK_PS_OPTIM_DENSE_H_
