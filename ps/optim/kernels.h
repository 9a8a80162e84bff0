// The inner loops of the rules, for the vectors that the processor has.

#ifndef PENSTOCK_PS_OPTIM_KERNELS_H_
#define PENSTOCK_PS_OPTIM_KERNELS_H_

#include <cstddef>

#include "ps/optim/rule.h"
#include "ps/optim/scalars.h"

namespace penstock::ps::optim {

// Optimizer::Apply() has the contract.
template <typename T>
using Kernel = void (*)(const Constants<T>& constants, const T* gradient,
                        const T* value, T* updated, T* const* slots,
                        size_t count);

struct Kernels {
  Kernel<float> f32;
  Kernel<double> f64;
};

// Returns the kernels of a rule. Any thread may call it.
//
// They use additions, multiplications, divisions and roots of IEEE 754 only,
// none fused and each rounded by itself, so they give the same bits on each
// processor, at each place of an array and by each way to divide it. That costs
// nothing where memory is what they wait for. A subnormal number is computed
// with as it is.
Kernels KernelsOf(Rule rule);

}  // namespace penstock::ps::optim

#endif  // PENSTOCK_PS_OPTIM_KERNELS_H_
