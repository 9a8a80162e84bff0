// Allocations of a peer's devices, as this process has them open.

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

// An allocation that a peer lends parts of. Opened when it is first used, and
// closed with the last share, aside, since drivers take their time.
// Thread-safe.
class BorrowedDevice {
 public:
  // The connection that it came by.
  class Connection {
   public:
    virtual ~Connection() = default;
    // Returns a share by which the peer, as long as it is held, does not take
    // this side for one that has closed all. Null if it may already. Must not
    // block.
    virtual std::shared_ptr<const void> KeepReading() = 0;
    // The peer's allocation of that number is closed.
    virtual void OnClosed(uint32_t id) = 0;
  };

  // `id`, `handle` and `size` are the peer's. `devices` outlives this.
  static std::shared_ptr<BorrowedDevice> Make(
      memory::DeviceAccess* devices, uint64_t size, std::string handle,
      std::weak_ptr<Connection> connection, uint32_t id);
  BorrowedDevice(const BorrowedDevice&) = delete;
  BorrowedDevice& operator=(const BorrowedDevice&) = delete;

  // Returns where it begins in this process. The first call opens it, which may
  // take milliseconds; others wait for that. If it fails, all do: the
  // peer is told to lend nothing of it.
  absl::StatusOr<const uint8_t*> Open();

  // Whether Open() has been called. Only for the last share.
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
