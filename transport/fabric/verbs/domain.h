// A protection domain of a device, and all memory that is registered in it.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_DOMAIN_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_DOMAIN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/fabric/verbs/gpu_direct.h"
#include "transport/fabric/verbs/gpu_registrations.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/fabric/verbs/options.h"
#include "transport/fabric/verbs/pool.h"
#include "transport/fabric/verbs/registration_cache.h"
#include "transport/fabric/verbs/spare_block.h"
#include "transport/memory/bytes.h"
#include "transport/memory/destinations.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace fabric {
namespace verbs {

// The size, in bytes, up to which bytes for a single use are copied instead of
// registered. The system calls that pin and unpin pages take tens of
// microseconds, plus some time for each page. Copying 100 KiB takes 10 us.
constexpr size_t kCopyMaxBytes = 256 * 1024;
// The minimum size of a part, in bytes. Smaller pieces of a message are copied,
// because a window's two requests and a separate READ cost more.
constexpr size_t kMinPartBytes = 64 * 1024;

// A region that stays registered as long as this object, or, in a pool, as long
// as the lease of the memory.
struct Registered {
  ibv_mr* region = nullptr;
  SharedRegistration share;  // null for memory of a pool
  // True if peers read the whole region by the region's own key, from
  // ibv_mr::addr on.
  bool by_key = false;
};

// The protection domain of connections, with its memory registrations. With
// windows, a peer reaches memory only through a window, which is bound to one
// queue pair. All connections of a device therefore share one domain. Without
// windows, a peer reaches all of exposed_pool(), so each connection has a
// domain of its own. Thread-safe.
class Domain {
 public:
  // Makes a domain on the device of `gpu_direct`. `locked_limit` is the
  // process's limit of locked memory. With windows, only the connections'
  // quotas limit the pools.
  static absl::StatusOr<std::shared_ptr<Domain>> Create(
      Api* api, ibv_context* device, const Options& options, bool with_windows,
      uint64_t locked_limit, std::shared_ptr<GpuDirect> gpu_direct);
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  ibv_pd* get() const { return domain_->get(); }
  bool has_windows() const { return with_windows_; }

  // Returns the pool for packets, and for payloads that are read from peers.
  Pool* private_pool() { return private_pool_.get(); }
  // Returns the pool for copies that peers read.
  Pool* exposed_pool() { return exposed_pool_.get(); }

  // Returns memory to read into. Takes the memory from private_pool() within
  // `quota`, or else from the heap. The heap's last large block is reused.
  absl::StatusOr<memory::Block> AllocateForRead(
      size_t size, const std::shared_ptr<Quota>& quota);
  // Returns an object that keeps the program's memory registered for READs.
  // Returns null if the memory cannot be registered, or if it is cheaper to
  // read into this domain's memory and copy from there. The program's memory
  // must outlive the result.
  std::shared_ptr<const void> PrepareToRead(const memory::Destination& into);
  // Returns a registration for this side's READs into `bytes`. The caller keeps
  // the bytes until the READs have ended. Sets `*gpu` if the bytes are prepared
  // memory of a GPU; otherwise it is null.
  absl::StatusOr<Registered> GetForRead(const memory::Bytes& bytes,
                                        memory::DeviceAccess** gpu);
  // Return a registration for a window on `bytes`. FindForWindow() returns a
  // null region if there is no registration yet. GetForWindow() then registers
  // the bytes.
  Registered FindForWindow(const memory::Bytes& bytes);
  absl::StatusOr<Registered> GetForWindow(const memory::Bytes& bytes);
  // may_expose_gpus() returns true if the memory of some GPU may be exposed
  // without a copy to the host. GetGpuToExpose() returns a registration of
  // `bytes`, for a window or for reads by the region's own key.
  bool may_expose_gpus() const {
    return with_windows_ && gpu_direct_->may_be(GpuUse::kSend);
  }
  absl::StatusOr<Registered> GetGpuToExpose(const memory::Bytes& bytes);

  // Frees memory that was kept for reads and has been unused for a while. Call
  // OnTick() periodically.
  void OnTick(absl::Time now) {
    spare_->OnTick(now);
    gpus_->OnTick(now);
  }

  // Counts all memory, including memory of GPUs.
  RegistrationCounters counters() const;
  // Returns a text about how the device reaches each GPU's memory, or why it
  // cannot. Empty if nothing is known yet.
  std::string DescribeGpus() const {
    return gpu_direct_->Describe(with_windows_);
  }

 private:
  Domain(Api* api, std::shared_ptr<const ProtectionDomain> domain,
         const Options& options, bool with_windows, uint64_t locked_limit,
         std::shared_ptr<GpuDirect> gpu_direct);
  std::shared_ptr<const void> PrepareHost(const memory::Destination& into);

  const bool with_windows_;
  const std::shared_ptr<const ProtectionDomain> domain_;
  const std::shared_ptr<Pool> private_pool_;
  const std::shared_ptr<Pool> exposed_pool_;
  const std::shared_ptr<RegistrationCache> cache_;
  const std::shared_ptr<SpareBlock> spare_;
  const std::shared_ptr<GpuDirect> gpu_direct_;
  const std::shared_ptr<GpuRegistrations> gpus_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_DOMAIN_H_
