// Which addresses of this process are those of device memory.
//
// gRPC hands messages on as slices, which are nothing but addresses. So memory
// of a device's that is sent or received in a slice is declared here, for as
// long as the slice lives, and whoever meets a slice looks here before reading
// it.

#ifndef PENSTOCK_TRANSPORT_MEMORY_DEVICE_RANGES_H_
#define PENSTOCK_TRANSPORT_MEMORY_DEVICE_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace memory {

// A declaration, which lasts as long as this object. Ranges may overlap: a
// buffer may be sent twice at the same time.
class DeviceRange {
 public:
  // Returns nothing while the bytes of the range may not be read yet, as before
  // a kernel has written them; then OK, or why they never may. Must not block.
  using Poll = std::function<absl::optional<absl::Status>()>;

  // `access` outlives all slices of the memory. `poll` may be null: the bytes
  // may be read at once. All of `range` belongs to one allocation.
  DeviceRange(absl::Span<const uint8_t> range, DeviceAccess* access, Poll poll);
  DeviceRange(const DeviceRange&) = delete;
  DeviceRange& operator=(const DeviceRange&) = delete;
  ~DeviceRange();

 private:
  class Registry;
  friend DeviceAccess* FindDevice(const void* data);
  friend void PermitDevices();
  friend absl::optional<absl::Status> PollDevice(
      absl::Span<const uint8_t> range);

  const absl::Span<const uint8_t> range_;
  DeviceAccess* const access_;
  const std::shared_ptr<const Poll> poll_;
};

// Returns whose memory is at `data`; null: the host's. Costs nothing but a load
// while nothing is declared. Thread-safe.
DeviceAccess* FindDevice(const void* data);

// Returns nothing while a declaration says that bytes of `range` may not be
// read yet; then OK, or the first error of a declaration. Thread-safe.
absl::optional<absl::Status> PollDevice(absl::Span<const uint8_t> range);

// Says that all messages of this process pass code that knows device memory, so
// that SetDevicesOfProcess() may succeed. Thread-safe.
void PermitDevices();

// Says that this process has devices, which `access`, which lives as long as
// the process, reaches: from now on connections tell their peers so. Returns
// FAILED_PRECONDITION, with the reason for people, before PermitDevices(), and
// after RelyOnNoDevices(); ALREADY_EXISTS if another one was named.
// Thread-safe.
absl::Status SetDevicesOfProcess(DeviceAccess* access);
// Returns it, or null.
DeviceAccess* DevicesOfProcess();

// Tells that something now relies on there being no device memory in messages:
// a channel whose filters read them. Returns false if DevicesOfProcess() is
// set: then it must not.
bool RelyOnNoDevices();

}  // namespace memory
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MEMORY_DEVICE_RANGES_H_
