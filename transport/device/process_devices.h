// The memory of this process's CUDA devices, for transports.

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

// Copies by each device's Copier, and shares by CUDA IPC; see docs/gpu.md.
//
// Who opens an allocation may read and write all of it, and of one that is no
// multiple of 2 MiB also what lies beside it in its last block: CUDA knows no
// smaller share. In the child of a fork all functions fail, as CUDA does.
class ProcessDevices : public memory::DeviceAccess {
 public:
  // More than a host's processes have messages for one under way. In the
  // driver, each takes some of the device's addresses, and a table's entry.
  static constexpr size_t kMaxOpen = 1024;

  // `devices` outlives it, and it outlives all that it has opened.
  explicit ProcessDevices(Devices* devices, size_t max_open = kMaxOpen);

  // Has the block not be freed before those have closed it with whom it is
  // shared (SharedAllocation::memory). Returns the share of those who use it in
  // this process, which this must outlive.
  std::shared_ptr<const void> Own(DeviceBlock block) {
    return owned_.Add(std::move(block));
  }

  absl::Status CopyToHost(absl::Span<const uint8_t> from, uint8_t* to) override;
  absl::Status CopyFromHost(absl::Span<const uint8_t> from,
                            uint8_t* to) override;

  // Takes what cuMemAlloc() and cudaMalloc() have made in this process. May be
  // called for each message: the driver is asked for a handle once, for the
  // last 256 allocations.
  absl::StatusOr<memory::SharedAllocation> Share(
      absl::Span<const uint8_t> range) override;

  // Memory that this process has shared itself is not opened: it is found where
  // it lies, if it is still there. Keep the share for as long as messages
  // of its owner may come: opening costs about as much as copying a megabyte.
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
  // By the allocation's number. Numbers grow, so the first is the oldest.
  std::map<uint64_t, std::string> made_ ABSL_GUARDED_BY(mu_);
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_PROCESS_DEVICES_H_
