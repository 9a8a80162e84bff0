// The vectorised loops of reduction.h.

#ifndef PENSTOCK_COLLECTIVES_REDUCTION_KERNELS_H_
#define PENSTOCK_COLLECTIVES_REDUCTION_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "collectives/reduction/reduction.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {

// The operands of one element: sources[0] to sources[number - 1].
struct Sources {
  const uint8_t* const* from;
  size_t number;
};

// Reduces like Reduce(). Then divides floating-point elements by `divisor`,
// unless the divisor is 1.
void ReduceVectors(ReduceOp op, tensor::DType dtype, Sources sources,
                   uint8_t* into, size_t count, int divisor);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_REDUCTION_KERNELS_H_
