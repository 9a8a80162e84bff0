// Allocates and copies tensors on a device.
//
// This is an interface, because tensor_service knows no driver: a program with
// a driver provides the implementation.

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

// Copies of `size` bytes; `size` is not 0. The buffers are on devices and have
// at least `size` bytes from `offset` on. Host memory may be of any kind:
// pageable, pinned, or a transport's. Buffers and host memory outlive the call.
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
// Copies from the beginning of `from` to the beginning of `to`. The two may be
// on different devices.
struct CopyOnDevice {
  const Buffer* from;
  Buffer* to;
  size_t size;
};

// The memory of this process's devices. Thread-safe: several threads may copy
// concurrently. No copy waits for another thread's copies or delays other work
// of the device. device_stream.h defines the order of copies and other work.
//
// No function aborts because of a device or a caller. Errors are
//
// - INVALID_ARGUMENT for a device or a stream that does not exist;
// - RESOURCE_EXHAUSTED if there is no memory;
// - INTERNAL or UNAVAILABLE, with the driver's message, for a device that
//   fails.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // Allocates a writable, uninitialised buffer on `device`, which is not the
  // host. The buffer may be used immediately, and may outlive everything but
  // this object.
  virtual absl::StatusOr<std::shared_ptr<Buffer>> Allocate(const Device& device,
                                                           size_t bytes) = 0;

  // Returns the device that owns the memory at `address`. For memory of unknown
  // origin. Returns INVALID_ARGUMENT if no device has memory there.
  virtual absl::StatusOr<Device> DeviceOf(uintptr_t address) = 0;

  // Make all copies as one batch, and block until the batch is complete. Copies
  // of one call have no order, so they must not overlap. After an error, the
  // contents of the targets are undefined, and nothing writes to them any more.
  virtual absl::Status Copy(absl::Span<const CopyToHost> copies) = 0;
  virtual absl::Status Copy(absl::Span<const CopyFromHost> copies) = 0;
  virtual absl::Status Copy(absl::Span<const CopyOnDevice> copies) = 0;

  // Returns an event that completes once all work that is now in `stream` of
  // `device` has run. Does not block. Stream::PerThread() is the calling
  // thread's stream. Returns INVALID_ARGUMENT, with the remedy, for stream 0.
  virtual absl::StatusOr<std::shared_ptr<const DeviceEvent>> Record(
      const Device& device, Stream stream) = 0;

  // Makes work that is queued in `stream` of `device` from now on run after
  // `event`. Does not block.
  virtual absl::Status Order(const DeviceEvent& event, const Device& device,
                             Stream stream) = 0;

  // Blocks until `event` has completed.
  virtual absl::Status Await(const DeviceEvent& event) = 0;

  // Returns true if `event` has completed. Does not block.
  virtual absl::StatusOr<bool> HasCompleted(const DeviceEvent& event) = 0;

  // Returns a slice of all bytes of `buffer`, which is on a device. The slice
  // keeps the buffer alive. Pass the slice only to a transport that supports
  // such slices; no other code may read it. The transport waits for ready(),
  // and copies bytes that it cannot send from the device. Returns
  // FAILED_PRECONDITION, with the reason, if this process has no such
  // transport, or if the transport could not send the buffer. The caller then
  // copies to the host.
  virtual absl::StatusOr<grpc::Slice> Lend(std::shared_ptr<Buffer> buffer) {
    return absl::FailedPreconditionError(
        "no transport of this process sends from devices");
  }

  // Makes the transports of this process send from devices and receive on
  // devices. Call it before channels and servers are created. Returns
  // FAILED_PRECONDITION, with the reason, if no transport supports this, or if
  // the call is too late. In that case all tensors are copied through the host.
  // After the first success, returns OK every time.
  virtual absl::Status ServeTransports() {
    return absl::FailedPreconditionError(
        "no transport of this process sends from devices");
  }

  // Returns the location of a received message's slice that begins at
  // `address`: the host, or a device where the slice is ready to be read.
  virtual Device DeviceOfSlice(const void* address) const { return Device(); }
};

// Sets the memory for all device copies of this library. Null, the initial
// value, disables such copies. `memory` must outlive all buffers and events
// that it makes. Thread-safe, but call it once, from main(), before there are
// tensors on devices: libraries should leave the choice to the program.
void SetDeviceMemory(DeviceMemory* memory);

// Returns the device memory of this process, or null.
DeviceMemory* GetDeviceMemory();

// Returns the device memory of this process. Returns FAILED_PRECONDITION, with
// the remedy, if there is none. `operation` names, in the error message, the
// operation that needs device memory.
absl::StatusOr<DeviceMemory*> NeedDeviceMemory(absl::string_view operation);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DEVICE_MEMORY_H_
