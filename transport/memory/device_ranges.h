// Records which addresses of this process are device memory.
//
// gRPC passes messages as slices, which are only addresses. Code that puts
// device memory into a slice therefore declares the memory here for the slice's
// lifetime. Code that receives a slice checks here before reading it.

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
  // A function that returns nothing while the bytes of the range are not ready,
  // for example before a kernel has written them. Returns OK once they are
  // ready, or an error if they will never be ready. Must not block.
  using Poll = std::function<absl::optional<absl::Status>()>;

  // Declares `range`, all of which belongs to one allocation. `access` must
  // outlive all slices of the memory. A null `poll` means that the bytes are
  // ready.
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

// Returns the access to the memory at `data`, or null for memory of the host.
// Costs one load while no range is declared. Thread-safe.
DeviceAccess* FindDevice(const void* data);

// Returns nothing while the bytes of any declaration in `range` are not ready.
// Then returns OK, or the first error. Thread-safe.
absl::optional<absl::Status> PollDevice(absl::Span<const uint8_t> range);

// Declares that each message of this process passes through code that can
// handle device memory. SetDevicesOfProcess() requires this. Thread-safe.
void PermitDevices();

// Declares that this process has devices. From now on, connections tell their
// peers. `access` gives access to the devices, and must live as long as the
// process. Returns FAILED_PRECONDITION, with the reason in words, before
// PermitDevices() and after RelyOnNoDevices(). Returns ALREADY_EXISTS if
// another access was set. Thread-safe.
absl::Status SetDevicesOfProcess(DeviceAccess* access);
// Returns the access of SetDevicesOfProcess(), or null.
DeviceAccess* DevicesOfProcess();

// Declares that some code relies on messages without device memory, for example
// a channel's filters that read messages. Returns false if DevicesOfProcess()
// is set; such code must not run then.
bool RelyOnNoDevices();

}  // namespace memory
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MEMORY_DEVICE_RANGES_H_
