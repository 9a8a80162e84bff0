// Finds out whether an RDMA device and its peers reach a GPU's memory: that it
// can be registered does not say that they do.

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

// Less than for windows on the host's memory: somebody waits for a message.
constexpr absl::Duration kGpuTrialLimit = absl::Milliseconds(250);

// Both use queue pairs that the device has with itself, since a failure breaks
// them. Both return, in few words, what did not work, or DATA_LOSS if other
// bytes came than a copy brings: between two devices there may be a switch or
// an IOMMU that leads astray. Neither leaves anything behind. Both block for up
// to `limit`, and for as long as the calls and copies themselves take.
//
// Reads the first and last ones of `bytes`, of a GPU, through a window that it
// binds to them on their `region`.
absl::Status TryGpuWindow(Api* api,
                          const std::shared_ptr<const ProtectionDomain>& domain,
                          uint8_t port, ibv_mr* region,
                          const memory::Bytes& bytes,
                          absl::Duration limit = kGpuTrialLimit);
// The same by the key of `region`, which is of just these bytes, and permits
// that.
absl::Status TryGpuKey(Api* api,
                       const std::shared_ptr<const ProtectionDomain>& domain,
                       uint8_t port, ibv_mr* region, const memory::Bytes& bytes,
                       absl::Duration limit = kGpuTrialLimit);
// Reads other bytes into the first and last ones of `into`, of a GPU, and puts
// back what was there.
absl::Status TryGpuLanding(
    Api* api, const std::shared_ptr<const ProtectionDomain>& domain,
    uint8_t port, ibv_mr* region, const memory::Destination& into,
    absl::Duration limit = kGpuTrialLimit);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_TRIAL_H_
