// The devices that this process uses.

#ifndef PENSTOCK_TRANSPORT_DEVICE_DEVICES_H_
#define PENSTOCK_TRANSPORT_DEVICE_DEVICES_H_

#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/device/copier.h"
#include "transport/device/device.h"
#include "transport/device/pinned_ranges.h"

namespace penstock {
namespace device {

// A device in use, with its copier.
struct OpenDevice {
  OpenDevice(std::unique_ptr<Device> opened, PinnedRanges* pinned)
      : device(std::move(opened)), copier(device.get(), pinned, {}) {}

  const std::unique_ptr<Device> device;
  Copier copier;
};

// The devices of this process. Opens each device at its first use, because a
// context takes half a second, and some hundred MB of the device's memory.
// Thread-safe.
class Devices {
 public:
  // Limits pinned ranges to `pinned_budget` bytes, for all devices together.
  Devices(Api* api, uint64_t pinned_budget);
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  // Returns the device with this number. The device lives as long as this
  // object. Returns the error of Device::Open() if the device cannot be opened;
  // the next call tries again.
  absl::StatusOr<OpenDevice*> At(int ordinal);

  // Returns the number of the device whose memory is at `address`. Returns
  // INVALID_ARGUMENT if the memory is not on a device. Opens the first device,
  // if no device is open.
  absl::StatusOr<int> OrdinalOf(abi::Address address);

  // Returns the number of the device with this UUID. Returns NOT_FOUND if this
  // process cannot see the device. Opens no device.
  absl::StatusOr<int> OrdinalOf(const abi::Uuid& uuid);

 private:
  // Returns any device that is not lost, or an error if there is none.
  absl::StatusOr<Device*> Any();

  Api* const api_;
  const std::shared_ptr<PinnedRanges> pinned_;
  base::Mutex mu_;  // held while a device is opened
  std::map<int, std::unique_ptr<OpenDevice>> open_ ABSL_GUARDED_BY(mu_);
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_DEVICES_H_
