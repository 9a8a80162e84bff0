// Reductions in host memory: what is used where there is no device, and what
// the kernels are held against.

#ifndef PENSTOCK_TRANSPORT_DEVICE_KERNELS_REDUCE_ON_HOST_H_
#define PENSTOCK_TRANSPORT_DEVICE_KERNELS_REDUCE_ON_HOST_H_

#include "absl/status/status.h"
#include "transport/device/kernels/reduction.h"

namespace penstock::device::kernels {

// Does `reduction` by the calling thread, with the bits that the kernels
// compute. INVALID_ARGUMENT: see Check(). A thread that has told its processor
// to take subnormal numbers for zero gets zeros for those of f32.
absl::Status ReduceOnHost(const Reduction& reduction);

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TRANSPORT_DEVICE_KERNELS_REDUCE_ON_HOST_H_
