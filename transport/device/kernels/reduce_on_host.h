// Reductions in host memory, for machines without a device, and as the
// reference for the kernels.

#ifndef PENSTOCK_TRANSPORT_DEVICE_KERNELS_REDUCE_ON_HOST_H_
#define PENSTOCK_TRANSPORT_DEVICE_KERNELS_REDUCE_ON_HOST_H_

#include "absl/status/status.h"
#include "transport/device/kernels/reduction.h"

namespace penstock::device::kernels {

// Performs `reduction` on the calling thread, with bits identical to the
// kernels' result. Returns INVALID_ARGUMENT as Check() does. Subnormal f32
// become zero if the thread has set this mode of its processor.
absl::Status ReduceOnHost(const Reduction& reduction);

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TRANSPORT_DEVICE_KERNELS_REDUCE_ON_HOST_H_
