// The inner loops of the rules, for the processor's vectors.

#ifndef PENSTOCK_PS_OPTIM_KERNELS_H_
#define PENSTOCK_PS_OPTIM_KERNELS_H_

#include <cstddef>

#include "ps/optim/rule.h"
#include "ps/optim/scalars.h"

namespace penstock::ps::optim {

// A function that computes a rule, with the contract of Optimizer::Apply().
template <typename T>
using Kernel = void (*)(const Constants<T>& constants, const T* gradient,
                        const T* value, T* updated, T* const* slots,
                        size_t count);

struct Kernels {
  Kernel<float> f32;
  Kernel<double> f64;
};

// Returns the kernels of a rule. Thread-safe.
//
// The kernels use only IEEE 754 additions, multiplications, divisions and
// roots, each rounded separately and none fused. They give the same bits on
// each processor, at each place of an array and for each division of an array.
// This costs nothing where memory is the bottleneck. Subnormal numbers are not
// flushed to zero.
Kernels KernelsOf(Rule rule);

}  // namespace penstock::ps::optim

#endif  // PENSTOCK_PS_OPTIM_KERNELS_H_
