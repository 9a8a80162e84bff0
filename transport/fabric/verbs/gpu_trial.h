// Tests if an RDMA device and its peers can access a GPU's memory. Successful
// registration does not prove this.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_TRIAL_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_TRIAL_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/memory/bytes.h"
#include "transport/memory/destinations.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Limits the time of one trial, because a message waits during the trial. The
// trial of windows on host memory has a longer limit.
constexpr absl::Duration kGpuTrialLimit = absl::Milliseconds(250);

// All functions use queue pairs that connect the device to itself, because a
// failed request breaks its queue pair. On failure, they return the name of the
// failed step. They return DATA_LOSS if the transferred bytes are wrong: a
// switch or an IOMMU between two devices may misdirect accesses. They leave no
// objects behind. They block for up to `limit`, plus the time of the calls and
// copies themselves.
//
// Reads the first and the last of `bytes`, which are on a GPU. Reads through a
// window that the trial binds on their `region`.
absl::Status TryGpuWindow(Api* api,
                          const std::shared_ptr<const ProtectionDomain>& domain,
                          uint8_t port, ibv_mr* region,
                          const memory::Bytes& bytes,
                          absl::Duration limit = kGpuTrialLimit);
// Reads the first and the last of `bytes`, as TryGpuWindow() does, but by the
// key of `region`. The region covers exactly these bytes, and permits such
// reads.
absl::Status TryGpuKey(Api* api,
                       const std::shared_ptr<const ProtectionDomain>& domain,
                       uint8_t port, ibv_mr* region, const memory::Bytes& bytes,
                       absl::Duration limit = kGpuTrialLimit);
// Reads other bytes into the first and the last bytes of `into`, which is on a
// GPU. Then restores the old bytes.
absl::Status TryGpuLanding(
    Api* api, const std::shared_ptr<const ProtectionDomain>& domain,
    uint8_t port, ibv_mr* region, const memory::Destination& into,
    absl::Duration limit = kGpuTrialLimit);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_TRIAL_H_
