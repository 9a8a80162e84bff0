// How tensors on a device are allocated and copied.
//
// An interface, because tensor_service knows no driver: the program that has
// one names it.

#ifndef PENSTOCK_TENSOR_SERVICE_DEVICE_MEMORY_H_
#define PENSTOCK_TENSOR_SERVICE_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/support/slice.h"
#include "tensor_service/buffer.h"
#include "tensor_service/device.h"
#include "tensor_service/device_stream.h"

namespace penstock::tensor {

// Copies of `size` bytes, which is not 0. The buffers lie on devices, and have
// that many bytes from `offset` on; they outlive the call, and so does the
// memory on the host, which is of any kind: pageable, pinned, a transport's.
struct CopyToHost {
  const Buffer* from;
  size_t offset;
  size_t size;
  char* to;
};
struct CopyFromHost {
  const char* from;
  size_t size;
  Buffer* to;
  size_t offset;
};
// From the beginning of one to that of the other, which may lie on another
// device.
struct CopyOnDevice {
  const Buffer* from;
  Buffer* to;
  size_t size;
};

// The memory of this process's devices. Thread-safe: several threads may copy
// at once, and none waits for another's copies, or holds up any other work of
// the device. device_stream.h says in what order copies are with that.
//
// A function returns an error, and never aborts, for whatever a device or a
// caller does: INVALID_ARGUMENT for a device that there is not, or a stream
// that is none; RESOURCE_EXHAUSTED if there is no memory; INTERNAL or
// UNAVAILABLE for a device that fails, with the driver's own word for it.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // Allocates a writable buffer on `device`, not the host, not initialised. It
  // may be touched at once, and may outlive everything but this.
  virtual absl::StatusOr<std::shared_ptr<Buffer>> Allocate(const Device& device,
                                                           size_t bytes) = 0;

  // Returns the device whose memory is at `address`, for memory that somebody
  // else has allocated, and does not say where. Returns INVALID_ARGUMENT if
  // there is none there.
  virtual absl::StatusOr<Device> DeviceOf(uintptr_t address) = 0;

  // Make all copies, as one batch: the caller waits once, for all of them.
  // Copies of one call are in no order, so none may write what another touches.
  // After an error, what was to be written is undefined, and nothing writes
  // there any more.
  virtual absl::Status Copy(absl::Span<const CopyToHost> copies) = 0;
  virtual absl::Status Copy(absl::Span<const CopyFromHost> copies) = 0;
  virtual absl::Status Copy(absl::Span<const CopyOnDevice> copies) = 0;

  // Returns the event that comes when all has run that is in `stream` of
  // `device` now. Does not wait. The stream that is each thread's own is the
  // caller's. Returns INVALID_ARGUMENT, with the remedy, for stream 0.
  virtual absl::StatusOr<std::shared_ptr<const DeviceEvent>> Record(
      const Device& device, Stream stream) = 0;

  // Has what is queued in `stream` of `device` from now on run after `event`.
  // Does not wait.
  virtual absl::Status Order(const DeviceEvent& event, const Device& device,
                             Stream stream) = 0;

  // Blocks until `event` has come.
  virtual absl::Status Await(const DeviceEvent& event) = 0;

  // Returns whether `event` has come. Does not wait.
  virtual absl::StatusOr<bool> HasCome(const DeviceEvent& event) = 0;

  // Returns a slice that is all bytes of `buffer`, on a device, and keeps it.
  // Only a transport that knows such slices may be given it: it waits for
  // ready(), and copies what it cannot send from there. Nobody else may read
  // it. Returns FAILED_PRECONDITION, with the reason, if this process has no
  // such transport, or the buffer is not of a kind that it could send: then
  // copy to the host.
  virtual absl::StatusOr<grpc::Slice> Lend(std::shared_ptr<Buffer> buffer) {
    return absl::FailedPreconditionError(
        "no transport of this process sends from devices");
  }

  // Has the transports of this process send from devices and receive there.
  // Call it before there are channels and servers. Returns FAILED_PRECONDITION,
  // with the reason, if no transport can, or it is too late: all tensors then
  // go by way of the host. Returns OK each time once it has succeeded.
  virtual absl::Status ServeTransports() {
    return absl::FailedPreconditionError(
        "no transport of this process sends from devices");
  }

  // Returns where a slice of a received message lies that begins at `address`:
  // on the host, or on a device, ready to be read there.
  virtual Device DeviceOfSlice(const void* address) const { return Device(); }
};

// The memory that all copies of this library go by, from now on; null, as at
// first: none. It must outlive all buffers and events that it makes.
// Thread-safe, but call it once, from main(), before there are tensors on
// devices: libraries should leave the choice to the program.
void SetDeviceMemory(DeviceMemory* memory);

// Returns it, or null.
DeviceMemory* GetDeviceMemory();

// Returns it, or FAILED_PRECONDITION, which says how to get one. `operation`
// says, for people, what it is for.
absl::StatusOr<DeviceMemory*> NeedDeviceMemory(absl::string_view operation);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DEVICE_MEMORY_H_
