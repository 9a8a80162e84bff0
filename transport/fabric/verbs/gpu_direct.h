// Access of an RDMA device to the memory of GPUs of this host.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_DIRECT_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_DIRECT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/base/mutex.h"
#include "transport/fabric/verbs/gpu_reach.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/memory/bytes.h"
#include "transport/memory/destinations.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Limits the size of a window, in bytes: mlx5 refuses a larger one when it is
// posted, which ends the connection.
constexpr uint64_t kMaxWindowBytes = uint64_t{1} << 31;

// Registers GPUs' memory with one RDMA device, tests if the device reaches that
// memory, and remembers the results. Thread-safe.
class GpuDirect {
 public:
  // `port` is a port of the device, through which the device reaches itself.
  GpuDirect(Api* api, uint8_t port) : api_(api), port_(port) {}
  GpuDirect(const GpuDirect&) = delete;
  GpuDirect& operator=(const GpuDirect&) = delete;

  // Returns what is known about the ways to reach the GPU of `bytes`. The
  // result lives as long as this object. Each GPU has a GpuReach of its own,
  // because GPUs may be behind different switches or IOMMUs. Named and unnamed
  // bytes also have separate ones. Bytes are named if
  // memory::DeviceAccess::Share() has a name for their allocation. Unnamed
  // bytes are of various kinds, for example memory of another process.
  absl::StatusOr<GpuReach*> ReachOf(const memory::Bytes& bytes, bool is_named);
  // Returns true if named memory of some GPU may be usable. Does not wait for a
  // trial.
  bool may_be(GpuUse use) const;

  // Registers `range`, memory of `gpu`, under its own addresses, for windows
  // and for this side's READs. `access` applies only to a region by peermem. A
  // region by dmabuf allows READs only, because Linux cannot bind a window to
  // such a region. A region keeps the physical memory. If the program frees the
  // memory, the same addresses may belong to other memory while the region
  // exists.
  absl::StatusOr<MemoryRegion> Register(GpuWay way, ibv_pd* pd,
                                        memory::DeviceAccess* gpu,
                                        absl::Span<const uint8_t> range,
                                        int access);
  // Registers `range` by dmabuf. Peers read by the region's own key, which is
  // valid for every connection in the domain. Therefore the region's addresses
  // (ibv_mr::addr) are unpredictable.
  absl::StatusOr<MemoryRegion> RegisterForPeers(
      ibv_pd* pd, memory::DeviceAccess* gpu, absl::Span<const uint8_t> range);

  // Each of the functions below tests one use of a GPU's memory, and returns OK
  // if it works:
  // - peers can read `bytes` through a window on `region`;
  // - peers can read `bytes` by the key of a `region` of RegisterForPeers();
  // - READs arrive in `into`, which nobody else uses.
  // Each blocks for one trial (gpu_trial.h).
  absl::Status TryWindow(const std::shared_ptr<const ProtectionDomain>& domain,
                         ibv_mr* region, const memory::Bytes& bytes);
  absl::Status TryKey(const std::shared_ptr<const ProtectionDomain>& domain,
                      ibv_mr* region, const memory::Bytes& bytes);
  absl::Status TryLanding(const std::shared_ptr<const ProtectionDomain>& domain,
                          ibv_mr* region, const memory::Destination& into);

  // Returns GpuReach::Describe() of each GPU.
  std::string Describe(bool with_windows) const;

 private:
  absl::StatusOr<MemoryRegion> RegisterDmabuf(ibv_pd* pd,
                                              memory::DeviceAccess* gpu,
                                              absl::Span<const uint8_t> range,
                                              uint64_t iova, int access);

  Api* const api_;
  const uint8_t port_;

  mutable base::Mutex mu_;
  // The GpuReach for each GPU. The key is the GPU's owner, the GPU's number,
  // and true if the memory has a name. Entries are never removed.
  std::map<std::tuple<const memory::DeviceAccess*, int, bool>,
           std::unique_ptr<GpuReach>>
      reaches_ ABSL_GUARDED_BY(mu_);
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_DIRECT_H_
