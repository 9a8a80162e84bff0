// Access to memory that the CPU cannot touch, such as a GPU's.
//
// An interface, because transport/memory knows no driver; transport/device
// implements it. Addresses of device memory are unique in the process, like
// CUDA's unified addresses: no other memory has the same address.

#ifndef PENSTOCK_TRANSPORT_MEMORY_DEVICE_ACCESS_H_
#define PENSTOCK_TRANSPORT_MEMORY_DEVICE_ACCESS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace memory {

// The size, in bytes, from which a range stays on the device. A shorter range
// is copied through the host, which costs less than naming the range to the
// peer and copying by a device.
constexpr size_t kMinDeviceBytes = 64 * 1024;

// The limit of the name of an allocation, in bytes.
constexpr size_t kMaxDeviceHandleBytes = 128;

// A range of device memory, as a part of the allocation that contains it.
// Another process of this host can open the allocation.
struct SharedAllocation {
  // The number of the allocation in this process. Never reused.
  uint64_t id = 0;
  // The size of the allocation, and the offset of the range, in bytes.
  uint64_t size = 0;
  uint64_t offset = 0;
  // The argument of Open() in the other process: 1 to kMaxDeviceHandleBytes
  // bytes.
  std::string handle;
  // Keeps the allocation alive, because no process may free an allocation that
  // another process has open. Null if the program keeps the allocation alive
  // itself. Releasing the last reference may free the allocation, which may
  // take long.
  std::shared_ptr<const void> memory;
  // Expires when this process stops using the allocation. Afterwards only
  // `memory` keeps the allocation alive.
  std::weak_ptr<const void> use;
};

// An allocation of another process, open in this one until the last reference
// is gone.
struct OpenAllocation {
  const uint8_t* data = nullptr;
  size_t size = 0;
  // Keeps the allocation open.
  std::shared_ptr<const void> owner;
};

// A range of device memory that a network device can register.
struct Dmabuf {
  base::UniqueFd fd;
  // The offset of the range in the descriptor. The descriptor covers whole host
  // pages, so this is the range's address modulo the page size.
  uint64_t offset = 0;
};

// The memory of this process's devices. Thread-safe. The functions that copy
// block the calling thread until the copy is done, but delay no other work of
// the device. All functions return an error, and never abort, whatever a driver
// or a caller does.
class DeviceAccess {
 public:
  virtual ~DeviceAccess() = default;

  // Copy between a range of device memory and the host. Call only after
  // PollDevice() has returned OK for the range. After an error nothing writes
  // to `to` any more, and the contents of `to` are undefined.
  virtual absl::Status CopyToHost(absl::Span<const uint8_t> from,
                                  uint8_t* to) = 0;
  virtual absl::Status CopyFromHost(absl::Span<const uint8_t> from,
                                    uint8_t* to) = 0;

  // Returns the data with which another process opens the allocation of
  // `range`. Returns FAILED_PRECONDITION, with the reason, if no process can
  // open the allocation.
  virtual absl::StatusOr<SharedAllocation> Share(
      absl::Span<const uint8_t> range) = 0;

  // Opens an allocation of `size` bytes of another process. `handle` and `size`
  // come from that process and may be wrong. Opens each handle once and shares
  // the result. Fails if the allocation cannot be opened here, for example
  // because there is no such device, or the other process has ended. The error
  // states the reason.
  virtual absl::StatusOr<OpenAllocation> Open(absl::string_view handle,
                                              uint64_t size) = 0;

  // Returns the number of the device that holds the range. A caller may be able
  // to access one device but not another. By default there is only device 0.
  virtual absl::StatusOr<int> OrdinalOf(absl::Span<const uint8_t> range) {
    return 0;
  }

  // Returns a descriptor through which network devices reach the range. Returns
  // FAILED_PRECONDITION, with the reason for people, if there is none.
  virtual absl::StatusOr<Dmabuf> ExportDmabuf(
      absl::Span<const uint8_t> range) = 0;

  // Makes the writes of a network device to the range visible to the device's
  // own work, including copies. Call after the CPU has seen the completion of
  // the writes. Called for each READ, so a device that needs no flush returns
  // immediately; other devices may block for some microseconds. Returns an
  // error if the device failed; then nothing may write to the device. The
  // default implementation fails, so that no network device writes.
  virtual absl::Status FlushWrites(absl::Span<const uint8_t> range) {
    return absl::UnimplementedError("writes of network devices are not seen");
  }
};

}  // namespace memory
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MEMORY_DEVICE_ACCESS_H_
