// How an RDMA device reaches the memory of other devices of this host: GPUs.

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

// A window is not bound to more: mlx5 refuses that where it is posted, which
// ends the connection.
constexpr uint64_t kMaxWindowBytes = uint64_t{1} << 31;

// Registers GPUs' memory with one RDMA device, tries whether that reaches it,
// and remembers what the tries have shown. Thread-safe.
class GpuDirect {
 public:
  // `port` is one of the device, by which it reaches itself.
  GpuDirect(Api* api, uint8_t port) : api_(api), port_(port) {}
  GpuDirect(const GpuDirect&) = delete;
  GpuDirect& operator=(const GpuDirect&) = delete;

  // Returns what is known of the GPU that `bytes` lie on, which lives as long
  // as this. That one GPU is reached says nothing of another, behind another
  // switch or IOMMU. Nor do bytes without a name (memory::DeviceAccess::Share),
  // which are of various kinds, as another process's, say anything of those
  // that have one.
  absl::StatusOr<GpuReach*> ReachOf(const memory::Bytes& bytes, bool is_named);
  // Returns whether there may be a way for memory of some GPU that has a name.
  // Does not wait for trials.
  bool may_be(GpuUse use) const;

  // Registers `range`, memory of `gpu`, under its own addresses, for windows
  // and for READs of this side's. `access` is what a region by peermem allows;
  // one by dmabuf allows READs to be written to it and nothing else, as Linux
  // lets no window be bound to it. That keeps the memory: the addresses may
  // come to mean other memory while it exists.
  absl::StatusOr<MemoryRegion> Register(GpuWay way, ibv_pd* pd,
                                        memory::DeviceAccess* gpu,
                                        absl::Span<const uint8_t> range,
                                        int access);
  // Registers `range` by dmabuf for peers to read by the region's own key, at
  // addresses (ibv_mr::addr) that nobody can guess: the key is valid for all
  // who have a connection in the domain.
  absl::StatusOr<MemoryRegion> RegisterForPeers(
      ibv_pd* pd, memory::DeviceAccess* gpu, absl::Span<const uint8_t> range);

  // Return whether peers can read `bytes`, of a GPU, through a window on
  // `region`, or by the key of `region`, which is RegisterForPeers()'s; and
  // whether READs come to lie in `into`, which nobody else uses. Block for that
  // (gpu_trial.h).
  absl::Status TryWindow(const std::shared_ptr<const ProtectionDomain>& domain,
                         ibv_mr* region, const memory::Bytes& bytes);
  absl::Status TryKey(const std::shared_ptr<const ProtectionDomain>& domain,
                      ibv_mr* region, const memory::Bytes& bytes);
  absl::Status TryLanding(const std::shared_ptr<const ProtectionDomain>& domain,
                          ibv_mr* region, const memory::Destination& into);

  // As GpuReach::Describe(), of each GPU.
  std::string Describe(bool with_windows) const;

 private:
  absl::StatusOr<MemoryRegion> RegisterDmabuf(ibv_pd* pd,
                                              memory::DeviceAccess* gpu,
                                              absl::Span<const uint8_t> range,
                                              uint64_t iova, int access);

  Api* const api_;
  const uint8_t port_;

  mutable base::Mutex mu_;
  // By the GPUs' owner, number, and whether the memory has a name. None is ever
  // removed.
  std::map<std::tuple<const memory::DeviceAccess*, int, bool>,
           std::unique_ptr<GpuReach>>
      reaches_ ABSL_GUARDED_BY(mu_);
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_DIRECT_H_
