// Memory of this process's CUDA devices, for transports.

#ifndef PENSTOCK_TRANSPORT_DEVICE_PROCESS_DEVICES_H_
#define PENSTOCK_TRANSPORT_DEVICE_PROCESS_DEVICES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "transport/base/mutex.h"
#include "transport/device/allocation.h"
#include "transport/device/allocation_name.h"
#include "transport/device/devices.h"
#include "transport/device/handles.h"
#include "transport/device/open_allocations.h"
#include "transport/device/owned_blocks.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace device {

// The memory of this process's CUDA devices. Copies by each device's Copier,
// and shares memory by CUDA IPC; see docs/gpu.md.
//
// A process that opens an allocation may read and write all of it. CUDA shares
// whole blocks of 2 MiB: if the size of the allocation is not a multiple of 2
// MiB, the process can also access other memory in the last block. In the child
// of a fork all functions fail, because CUDA does not work there.
class ProcessDevices : public memory::DeviceAccess {
 public:
  // Caps the open allocations. The processes of one host have fewer messages in
  // flight to one process. In the driver, each open allocation takes device
  // addresses and a table entry.
  static constexpr size_t kMaxOpen = 1024;

  // Opens at most `max_open` allocations at a time. `devices` must outlive this
  // object. This object must outlive all allocations that it has opened.
  explicit ProcessDevices(Devices* devices, size_t max_open = kMaxOpen);

  // Takes ownership of the block. Frees the block only after all processes that
  // share it have closed it (SharedAllocation::memory). Returns a reference for
  // users in this process. This object must outlive the reference.
  std::shared_ptr<const void> Own(DeviceBlock block) {
    return owned_.Add(std::move(block));
  }

  absl::Status CopyToHost(absl::Span<const uint8_t> from, uint8_t* to) override;
  absl::Status CopyFromHost(absl::Span<const uint8_t> from,
                            uint8_t* to) override;

  // Returns the name by which another process can open the allocation that
  // contains `range`. The allocation must be from cuMemAlloc() or cudaMalloc()
  // in this process. Cheap enough to call for each
  // message: the handles of the last 256 allocations are cached.
  absl::StatusOr<memory::SharedAllocation> Share(
      absl::Span<const uint8_t> range) override;

  // Opens an allocation of another process. If the memory belongs to this
  // process, returns that memory directly, as long as it exists. Keep the
  // reference while the owner may send more messages: opening costs about as
  // much as copying a megabyte.
  absl::StatusOr<memory::OpenAllocation> Open(absl::string_view handle,
                                              uint64_t size) override;

  absl::StatusOr<int> OrdinalOf(absl::Span<const uint8_t> range) override;

  absl::StatusOr<memory::Dmabuf> ExportDmabuf(
      absl::Span<const uint8_t> range) override;

  absl::Status FlushWrites(absl::Span<const uint8_t> range) override;

 private:
  absl::StatusOr<OpenDevice*> DeviceOf(const uint8_t* data);
  absl::StatusOr<std::string> NameOf(Device* device,
                                     const Allocation& allocation, uint64_t id);
  absl::StatusOr<Mapping> FindOwn(const AllocationName& name);
  absl::StatusOr<Mapping> MapForeign(const AllocationName& name);

  Devices* const devices_;
  const absl::StatusOr<AllocationNames> names_;
  OpenAllocations open_;
  OwnedBlocks owned_;

  base::Mutex mu_;
  // The handles, by the number of their allocation. Numbers increase, so the
  // first entry is the oldest.
  std::map<uint64_t, std::string> made_ ABSL_GUARDED_BY(mu_);
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_PROCESS_DEVICES_H_
