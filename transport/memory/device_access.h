// What can be done with memory that the CPU cannot touch: a GPU's.
//
// An interface, because what is here knows no driver: transport/device does.
// Addresses of such memory are addresses of the process all the same, as CUDA's
// unified ones: none is that of other memory.

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

// A shorter range is copied by way of the host: to name it to a peer, and to
// have a device copy it there, costs more.
constexpr size_t kMinDeviceBytes = 64 * 1024;

// The longest name of an allocation.
constexpr size_t kMaxDeviceHandleBytes = 128;

// A range of device memory, as a part of the allocation that it lies in, which
// another process of this host can open.
struct SharedAllocation {
  // Names the allocation in this process. No other one has ever had it.
  uint64_t id = 0;
  // In bytes, and where the range begins.
  uint64_t size = 0;
  uint64_t offset = 0;
  // What Open() takes in the other process: 1 to kMaxDeviceHandleBytes bytes.
  std::string handle;
  // Keeps the allocation from being freed, which no process may do while
  // another one has it open. Null if that is up to the program. The last share
  // may free it, which may take long.
  std::shared_ptr<const void> memory;
  // Expires when this process uses it no more, so that only `memory` keeps it.
  std::weak_ptr<const void> use;
};

// An allocation of another process's, open in this one until the last share is
// gone.
struct OpenAllocation {
  const uint8_t* data = nullptr;
  size_t size = 0;
  // Keeps it open.
  std::shared_ptr<const void> owner;
};

// A range of device memory that a network device can register.
struct Dmabuf {
  base::UniqueFd fd;
  // Where the range begins in it: the range's address, modulo a page of the
  // host's, since the descriptor is of whole pages.
  uint64_t offset = 0;
};

// The memory of this process's devices. Thread-safe. The functions that copy
// block the calling thread until they have; no other work waits for them. All
// return an error, and never abort, for whatever a driver or a caller does.
class DeviceAccess {
 public:
  virtual ~DeviceAccess() = default;

  // Copy between a range of device memory, that PollDevice() has said may be
  // read, and the host. After an error nothing writes to `to` any more, whose
  // contents are undefined then.
  virtual absl::Status CopyToHost(absl::Span<const uint8_t> from,
                                  uint8_t* to) = 0;
  virtual absl::Status CopyFromHost(absl::Span<const uint8_t> from,
                                    uint8_t* to) = 0;

  // Returns how another process opens the allocation of `range`. Returns
  // FAILED_PRECONDITION, with the reason for people, if none can.
  virtual absl::StatusOr<SharedAllocation> Share(
      absl::Span<const uint8_t> range) = 0;

  // Opens an allocation of `size` bytes of another process's. `handle` and
  // `size` came from that process, which may lie. The same handle is opened
  // once for all who ask. Returns an error, for people, if it cannot be opened
  // here: there is no such device, or the handle's process has gone.
  virtual absl::StatusOr<OpenAllocation> Open(absl::string_view handle,
                                              uint64_t size) = 0;

  // Returns the number of the device that the range lies on. What reaches one
  // need not reach another. Where it is not overridden, there is but one.
  virtual absl::StatusOr<int> OrdinalOf(absl::Span<const uint8_t> range) {
    return 0;
  }

  // Returns a descriptor by which network devices reach the range. Returns
  // FAILED_PRECONDITION, with the reason for people, if there is none.
  virtual absl::StatusOr<Dmabuf> ExportDmabuf(
      absl::Span<const uint8_t> range) = 0;

  // Makes visible to the device's own work, to copies too, what a network
  // device has written to the range, once the CPU has seen the completion of
  // that, if the device does not see to it by itself. Returns an error if the
  // device could not: then it must not be written to. May block for some
  // microseconds. Called for each READ, so cheap where it is not needed. Unless
  // it is overridden, no network device may write.
  virtual absl::Status FlushWrites(absl::Span<const uint8_t> range) {
    return absl::UnimplementedError("writes of network devices are not seen");
  }
};

}  // namespace memory
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MEMORY_DEVICE_ACCESS_H_
