// Allocations of a peer's devices that this process has open.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_BORROWED_DEVICE_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_BORROWED_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace fabric {
namespace shm {

// An allocation of device memory that a peer lends in parts. Opens the
// allocation at its first use. The last reference closes the allocation, on
// another thread, because drivers are slow. Thread-safe.
class BorrowedDevice {
 public:
  // The interface to the connection with the peer that lent the allocation.
  class Peer {
   public:
    virtual ~Peer() = default;
    // Returns a reference, or null. While the reference exists, the peer knows
    // that this side may still read its memory. Returns null if the peer may
    // already have concluded that this side has closed everything. Must not
    // block.
    virtual std::shared_ptr<const void> KeepReading() = 0;
    // Called when the peer's allocation `id` is closed.
    virtual void OnClosed(uint32_t id) = 0;
  };

  // Makes an object for an allocation that is not open yet. `id`, `handle` and
  // `size` come from the peer. `devices` must outlive this object.
  static std::shared_ptr<BorrowedDevice> Make(memory::DeviceAccess* devices,
                                              uint64_t size, std::string handle,
                                              std::weak_ptr<Peer> peer,
                                              uint32_t id);
  BorrowedDevice(const BorrowedDevice&) = delete;
  BorrowedDevice& operator=(const BorrowedDevice&) = delete;

  // Returns the address of the allocation in this process. The first call opens
  // the allocation, which may take milliseconds; concurrent calls wait. If
  // opening fails, all calls fail, and the peer learns that it must not lend
  // the allocation.
  absl::StatusOr<const uint8_t*> Open();

  // Returns true if Open() has been called. Call only as the holder of the last
  // reference.
  bool was_tried() {
    base::MutexLock lock(&mu_);
    return tried_;
  }

  uint64_t size() const { return size_; }
  memory::DeviceAccess* access() const { return devices_; }

 private:
  BorrowedDevice(memory::DeviceAccess* devices, uint64_t size,
                 std::string handle);

  memory::DeviceAccess* const devices_;
  const uint64_t size_;
  const std::string handle_;

  base::Mutex mu_;
  bool tried_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failed_ ABSL_GUARDED_BY(mu_);
  memory::OpenAllocation open_ ABSL_GUARDED_BY(mu_);
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_BORROWED_DEVICE_H_
