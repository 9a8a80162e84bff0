// Plans a reduction on a device: the kernel, the number of threads, and the
// arguments. Needs no driver.

#ifndef PENSTOCK_TRANSPORT_DEVICE_KERNELS_LAUNCH_PLAN_H_
#define PENSTOCK_TRANSPORT_DEVICE_KERNELS_LAUNCH_PLAN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "transport/device/kernels/arguments.h"
#include "transport/device/kernels/operation.h"
#include "transport/device/kernels/reduction.h"

namespace penstock::device::kernels {

// The parameters of cuLaunchKernel: a grid of (`blocks`, 1, 1), blocks of
// (`threads`, 1, 1), no shared memory, and `arguments` as the only parameter.
struct LaunchPlan {
  const char* kernel = nullptr;  // of the fatbin, see fatbin.h
  uint32_t blocks = 0;           // 0: there is nothing to do
  uint32_t threads = kThreadsPerBlock;
  Arguments arguments = {};
};

// Returns "penstock_sum_f32" and so on.
const char* KernelName(Operation operation, ElementType type);

// Plans `reduction`, whose addresses belong to a device with `multiprocessors`.
// The number of multiprocessors changes the speed, never the result. If all
// arrays have the same misalignment to kVectorBytes, kernels load and store
// vectors, otherwise single elements. Returns INVALID_ARGUMENT as Check() does.
absl::StatusOr<LaunchPlan> PlanLaunch(const Reduction& reduction,
                                      int multiprocessors);

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TRANSPORT_DEVICE_KERNELS_LAUNCH_PLAN_H_
