// Owners of objects of a device or the connection manager.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_HANDLES_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_HANDLES_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "transport/fabric/verbs/api.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Owns one object, and destroys it once with `kDestroy`. Move-only. Not
// thread-safe.
//
// In a class, declare a protection domain before the objects in it, because
// members are destroyed from the last to the first. Destroying fails only if
// this order was broken or the device is gone. The destructor ignores the
// failure, because there is no remedy.
template <typename T, int (Api::*kDestroy)(T*)>
class Handle {
 public:
  Handle() = default;
  Handle(Api* api, T* object) : api_(api), object_(object) {}
  Handle(Handle&& other) noexcept
      : api_(other.api_), object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~Handle() { Reset(); }

  void Reset() {
    if (object_ != nullptr) (void)(api_->*kDestroy)(object_);
    object_ = nullptr;
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  Api* api_ = nullptr;
  T* object_ = nullptr;
};

using ProtectionDomain = Handle<ibv_pd, &Api::DeallocPd>;
using MemoryRegion = Handle<ibv_mr, &Api::DeregMr>;
using MemoryWindow = Handle<ibv_mw, &Api::DeallocMw>;
using CompletionChannel = Handle<ibv_comp_channel, &Api::DestroyCompChannel>;
using CompletionQueue = Handle<ibv_cq, &Api::DestroyCq>;
using QueuePair = Handle<ibv_qp, &Api::IbvDestroyQp>;
using SharedReceiveQueue = Handle<ibv_srq, &Api::DestroySrq>;
// An owner of an identifier. Destroy the identifier's queue pair and
// acknowledge its events before this object is destroyed.
using CmId = Handle<rdma_cm_id, &Api::DestroyId>;

// The functions below create one object each. The error names the device. If
// users can change the cause (locked memory), the error also names the remedy.
absl::StatusOr<ProtectionDomain> AllocPd(Api* api, ibv_context* device);
absl::StatusOr<MemoryRegion> RegMr(Api* api, ibv_pd* pd, void* address,
                                   size_t length, int access);
// Registers `length` bytes of a dmabuf, from `offset` on. Work requests and
// peers use addresses from `iova` on, which becomes ibv_mr::addr. `iova` may
// differ from the process's own address, but must be equal to `offset` modulo
// the page size. Returns UNIMPLEMENTED if the library, the kernel or the device
// does not support this.
absl::StatusOr<MemoryRegion> RegDmabufMr(Api* api, ibv_pd* pd, uint64_t offset,
                                         size_t length, uint64_t iova, int fd,
                                         int access);
absl::StatusOr<MemoryWindow> AllocWindow(Api* api, ibv_pd* pd);
// Creates a completion channel with a non-blocking descriptor.
absl::StatusOr<CompletionChannel> CreateChannel(Api* api, ibv_context* device);
absl::StatusOr<CompletionQueue> CreateCq(Api* api, ibv_context* device,
                                         int entries,
                                         ibv_comp_channel* channel);
absl::StatusOr<SharedReceiveQueue> CreateSrq(Api* api, ibv_pd* pd,
                                             uint32_t requests);
// Makes an id in the TCP port space.
absl::StatusOr<CmId> CreateId(Api* api, rdma_event_channel* channel);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_HANDLES_H_
