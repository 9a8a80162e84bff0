// How an RDMA device reaches the memory of other devices of this host: GPUs.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_DIRECT_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_DIRECT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/base/mutex.h"
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

// Knows how one RDMA device registers GPUs' memory: by the dmabuf that the GPU
// exports, or by its address, which works where a peer-memory module of the
// kernel (nvidia_peermem) knows that address. And whether peers can read it
// through windows, and READs come to lie in it. Nothing but a try tells, and
// there is nothing to try before the program has GPUs' memory to send or to
// receive into: so the first ranges are the tries. What they prove holds as
// long as this. Thread-safe.
class GpuDirect {
 public:
  // `port` is one of the device, by which it reaches itself.
  GpuDirect(Api* api, uint8_t port) : api_(api), port_(port) {}
  GpuDirect(const GpuDirect&) = delete;
  GpuDirect& operator=(const GpuDirect&) = delete;

  // Return whether it is known to work, or is still to be tried: for peers that
  // read, and for READs of this side's. Neither blocks.
  bool may_expose() const { return way_ != Way::kNone && windows_.may_be(); }
  bool may_land() const { return way_ != Way::kNone && landing_.may_be(); }
  // Returns whether it is known how memory is registered.
  bool is_way_known() const {
    return way_ == Way::kDmabuf || way_ == Way::kPeermem;
  }

  // Registers `range`, memory of `gpu`, under its own addresses. The region
  // keeps the memory where the way is dmabuf: the addresses may come to mean
  // other memory while it exists.
  absl::StatusOr<MemoryRegion> Register(ibv_pd* pd, memory::DeviceAccess* gpu,
                                        absl::Span<const uint8_t> range,
                                        int access);

  // Return whether peers can read `bytes`, of a GPU, through a window on
  // `region`, and whether READs come to lie in `into`, which nobody else uses.
  // The first call tries it, and blocks for that (gpu_trial.h). A failure is
  // tried again with a few later ones.
  absl::Status CheckWindows(
      const std::shared_ptr<const ProtectionDomain>& domain, ibv_mr* region,
      const memory::Bytes& bytes);
  absl::Status CheckLanding(
      const std::shared_ptr<const ProtectionDomain>& domain, ibv_mr* region,
      const memory::Destination& into);

  // Returns how GPUs' memory goes, for people: "GPUDirect by dmabuf". Empty as
  // long as that is not known. `with_windows`: whether peers are let in at all.
  std::string Describe(bool with_windows) const;

 private:
  enum class Way { kUnknown, kDmabuf, kPeermem, kNone };
  // What a trial has shown.
  class Proof {
   public:
    bool is_good() const { return verdict_ == Verdict::kGood; }
    bool may_be() const { return verdict_ != Verdict::kRefused; }
    // Notes how a trial ended, and returns that. Call these two with the
    // owner's lock.
    absl::Status Take(absl::Status status);
    const absl::Status& why() const { return why_; }

   private:
    enum class Verdict { kUnknown, kGood, kRefused };
    std::atomic<Verdict> verdict_{Verdict::kUnknown};
    int tries_ = 0;
    absl::Status why_;
  };

  absl::StatusOr<MemoryRegion> RegisterBy(Way way, ibv_pd* pd,
                                          memory::DeviceAccess* gpu,
                                          absl::Span<const uint8_t> range,
                                          int access);
  absl::StatusOr<MemoryRegion> FindWayLocked(ibv_pd* pd,
                                             memory::DeviceAccess* gpu,
                                             absl::Span<const uint8_t> range,
                                             int access)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Api* const api_;
  const uint8_t port_;
  // Written under the lock; what is known never changes.
  std::atomic<Way> way_{Way::kUnknown};
  Proof windows_;
  Proof landing_;

  mutable base::Mutex mu_;
  int tries_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status no_way_ ABSL_GUARDED_BY(mu_);
  // Of the last range that could not be registered although others can.
  absl::Status last_failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_DIRECT_H_
