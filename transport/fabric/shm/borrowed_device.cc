#include "transport/fabric/shm/borrowed_device.h"

#include <utility>

#include "transport/progress/aside.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace fabric {
namespace shm {

std::shared_ptr<BorrowedDevice> BorrowedDevice::Make(
    memory::DeviceAccess* devices, uint64_t size, std::string handle,
    std::weak_ptr<Peer> peer, uint32_t id) {
  // Leaks the object in a forked child, because no driver works there.
  return std::shared_ptr<BorrowedDevice>(
      new BorrowedDevice(devices, size, std::move(handle)),
      [fork_count = progress::ForkCount(), weak = std::move(peer),
       id](BorrowedDevice* ended) {
        if (fork_count != progress::ForkCount()) return;
        std::shared_ptr<Peer> told = weak.lock();
        auto reading = told == nullptr ? nullptr : told->KeepReading();
        // Chooses the queue for closing. An allocation that was never opened
        // needs no driver. Closing such an allocation counts as a task that
        // strangers can cause, because passing many allocations costs a peer
        // nothing.
        const progress::Aside kind = ended->was_tried()
                                         ? progress::Aside::kDevice
                                         : progress::Aside::kMemory;
        progress::RunAside(kind, [ended, told = std::move(told),
                                  reading = std::move(reading), id] {
          delete ended;
          if (told != nullptr) told->OnClosed(id);
        });
      });
}

BorrowedDevice::BorrowedDevice(memory::DeviceAccess* devices, uint64_t size,
                               std::string handle)
    : devices_(devices), size_(size), handle_(std::move(handle)) {}

absl::StatusOr<const uint8_t*> BorrowedDevice::Open() {
  base::MutexLock lock(&mu_);
  if (!tried_) {
    tried_ = true;
    absl::StatusOr<memory::OpenAllocation> open =
        devices_->Open(handle_, size_);
    if (!open.ok()) {
      failed_ = open.status();
    } else if (open->data == nullptr || open->size < size_) {
      failed_ = absl::InvalidArgumentError(
          "the peer's allocation is smaller than it says");
    } else {
      open_ = *std::move(open);
    }
  }
  if (!failed_.ok()) return failed_;
  return open_.data;
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
