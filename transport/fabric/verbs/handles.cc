#include "transport/fabric/verbs/handles.h"

#include <fcntl.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "transport/fabric/verbs/status.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// Returns an owner of `object`, or an error. `object` is the result of a
// creating call, whose errno is still set.
template <typename HandleType, typename T>
absl::StatusOr<HandleType> Own(Api* api, T* object, ibv_context* device,
                               const char* operation) {
  if (object == nullptr) return CallFailed(api, errno, operation, device);
  return HandleType(api, object);
}

// Returns true for the errors by which the library, the kernel or a driver
// rejects an unknown call.
bool IsUnknownCall(int error_number) {
  return error_number == EOPNOTSUPP || error_number == EPROTONOSUPPORT ||
         error_number == ENOSYS || error_number == ENOTTY;
}

absl::Status NoDmabuf(Api* api, ibv_context* device) {
  if (!api->HasRegDmabufMr()) {
    return absl::UnimplementedError(
        "this libibverbs registers no dmabuf (rdma-core does from 34 on)");
  }
  return absl::UnimplementedError(
      absl::StrCat(api->GetDeviceName(device->device), " registers no dmabuf"));
}

}  // namespace

absl::StatusOr<ProtectionDomain> AllocPd(Api* api, ibv_context* device) {
  return Own<ProtectionDomain>(api, api->AllocPd(device), device,
                               "allocate a protection domain");
}

absl::StatusOr<MemoryRegion> RegMr(Api* api, ibv_pd* pd, void* address,
                                   size_t length, int access) {
  return Own<MemoryRegion>(api, api->RegMr(pd, address, length, access),
                           pd->context, "register memory");
}

absl::StatusOr<MemoryRegion> RegDmabufMr(Api* api, ibv_pd* pd, uint64_t offset,
                                         size_t length, uint64_t iova, int fd,
                                         int access) {
  ibv_mr* const region = api->RegDmabufMr(pd, offset, length, iova, fd, access);
  if (region == nullptr && IsUnknownCall(errno)) {
    return NoDmabuf(api, pd->context);
  }
  return Own<MemoryRegion>(api, region, pd->context, "register a dmabuf");
}

absl::StatusOr<MemoryWindow> AllocWindow(Api* api, ibv_pd* pd) {
  return Own<MemoryWindow>(api, api->AllocMw(pd, IBV_MW_TYPE_2), pd->context,
                           "allocate a memory window");
}

absl::StatusOr<CompletionChannel> CreateChannel(Api* api, ibv_context* device) {
  absl::StatusOr<CompletionChannel> channel =
      Own<CompletionChannel>(api, api->CreateCompChannel(device), device,
                             "create a completion channel");
  if (!channel.ok()) return channel;
  const int flags = fcntl((*channel)->fd, F_GETFL);
  if (flags < 0 || fcntl((*channel)->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return CallFailed(api, errno, "set up a completion channel", device);
  }
  return channel;
}

absl::StatusOr<CompletionQueue> CreateCq(Api* api, ibv_context* device,
                                         int entries,
                                         ibv_comp_channel* channel) {
  return Own<CompletionQueue>(
      api, api->CreateCq(device, entries, nullptr, channel, 0), device,
      "create a completion queue");
}

absl::StatusOr<SharedReceiveQueue> CreateSrq(Api* api, ibv_pd* pd,
                                             uint32_t requests) {
  ibv_srq_init_attr attr = {};
  attr.attr.max_wr = requests;
  attr.attr.max_sge = 1;
  return Own<SharedReceiveQueue>(api, api->CreateSrq(pd, &attr), pd->context,
                                 "create a shared receive queue");
}

absl::StatusOr<CmId> CreateId(Api* api, rdma_event_channel* channel) {
  rdma_cm_id* id = nullptr;
  if (api->CreateId(channel, &id, nullptr, RDMA_PS_TCP) != 0) {
    return CallFailed(api, errno, "create a connection identifier", nullptr);
  }
  return CmId(api, id);
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
