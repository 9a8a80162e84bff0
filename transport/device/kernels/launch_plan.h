// How a reduction is started on a device: which kernel, with how many threads,
// and what each is told. Needs no driver.

#ifndef PENSTOCK_TRANSPORT_DEVICE_KERNELS_LAUNCH_PLAN_H_
#define PENSTOCK_TRANSPORT_DEVICE_KERNELS_LAUNCH_PLAN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "transport/device/kernels/arguments.h"
#include "transport/device/kernels/operation.h"
#include "transport/device/kernels/reduction.h"

namespace penstock::device::kernels {

// For cuLaunchKernel: a grid of `blocks`, 1, 1 of `threads`, 1, 1 without
// shared memory, and `arguments` as the one parameter.
struct LaunchPlan {
  const char* kernel = nullptr;  // of the fatbin, see fatbin.h
  uint32_t blocks = 0;           // 0: there is nothing to do
  uint32_t threads = kThreadsPerBlock;
  Arguments arguments = {};
};

// Returns "penstock_sum_f32" and so on.
const char* KernelName(Operation operation, ElementType type);

// Returns how to do `reduction`, which has addresses of the device that it is
// for, of `multiprocessors`. They change the speed, never the result. If all
// arrays lie at the same distance from a multiple of kVectorBytes, vectors are
// loaded and stored, else single elements. INVALID_ARGUMENT: see Check().
absl::StatusOr<LaunchPlan> PlanLaunch(const Reduction& reduction,
                                      int multiprocessors);

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TRANSPORT_DEVICE_KERNELS_LAUNCH_PLAN_H_
