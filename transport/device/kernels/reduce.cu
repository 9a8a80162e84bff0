// The kernels, under the names of KernelName(); see launch_plan.h.

#include "transport/device/kernels/arguments.h"
#include "transport/device/kernels/element.h"
#include "transport/device/kernels/operation.h"
#include "transport/device/kernels/reduce_thread.h"

namespace penstock::device::kernels {

// __grid_constant__ keeps the arguments in the device's constant memory.
// Otherwise each thread would copy them, because it indexes the inputs.
#define PENSTOCK_KERNEL(name, operation, Element)                         \
  extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)          \
      penstock_##name(const __grid_constant__ Arguments arguments) {      \
    ReduceThread<Operation::operation, Element>(                          \
        arguments, uint64_t{blockIdx.x} * kThreadsPerBlock + threadIdx.x, \
        uint64_t{gridDim.x} * kThreadsPerBlock);                          \
  }

PENSTOCK_KERNEL(sum_f32, kSum, float)
PENSTOCK_KERNEL(sum_f16, kSum, Half)
PENSTOCK_KERNEL(sum_bf16, kSum, Bfloat16)
PENSTOCK_KERNEL(mean_f32, kMean, float)
PENSTOCK_KERNEL(mean_f16, kMean, Half)
PENSTOCK_KERNEL(mean_bf16, kMean, Bfloat16)
PENSTOCK_KERNEL(scaled_add_f32, kScaledAdd, float)
PENSTOCK_KERNEL(scaled_add_f16, kScaledAdd, Half)
PENSTOCK_KERNEL(scaled_add_bf16, kScaledAdd, Bfloat16)

}  // namespace penstock::device::kernels
