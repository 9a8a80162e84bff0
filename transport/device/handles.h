// Owners of objects of a device's driver.

#ifndef PENSTOCK_TRANSPORT_DEVICE_HANDLES_H_
#define PENSTOCK_TRANSPORT_DEVICE_HANDLES_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "transport/device/device.h"
#include "transport/device/relaxed_capture.h"

namespace penstock {
namespace device {

// Owns one object of a device, and destroys it once with `kDestroy`, in the
// device's context. Move-only. Not thread-safe.
//
// Destroying fails only if the device is lost, or in a forked child. The
// destructor ignores the failure, because there is no remedy.
template <typename T, abi::Result (Api::*kDestroy)(T)>
class Handle {
 public:
  Handle() = default;
  Handle(Device* device, T object) : device_(device), object_(object) {}
  Handle(Handle&& other) noexcept
      : device_(other.device_), object_(std::exchange(other.object_, T())) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~Handle() {
    if (object_ == T()) return;
    abi::Context left = nullptr;
    Api* const api = device_->api();
    const RelaxedCapture capture(api);
    // Enters the context directly. Device::Enter() refuses a lost device, but
    // the objects of a lost device must be destroyed as well.
    const bool entered =
        api->CtxPushCurrent(device_->context()) == abi::kSuccess;
    (void)(api->*kDestroy)(object_);
    if (entered) (void)api->CtxPopCurrent(&left);
  }

  T get() const { return object_; }
  explicit operator bool() const { return object_ != T(); }

 private:
  Device* device_ = nullptr;
  T object_ = T();
};

using Stream = Handle<abi::Stream, &Api::StreamDestroy>;
using Event = Handle<abi::Event, &Api::EventDestroy>;
using DeviceBlock = Handle<abi::Address, &Api::MemFree>;
// An owner of another process's memory that is open in this process.
using OpenedMemory = Handle<abi::Address, &Api::IpcCloseMemHandle>;
using PinnedBlock = Handle<void*, &Api::MemFreeHost>;
using Module = Handle<abi::Module, &Api::ModuleUnload>;
using PinnedRange = Handle<void*, &Api::MemHostUnregister>;

// The functions below create one object each, in the device's context. They
// return RESOURCE_EXHAUSTED if memory runs out, which is a normal answer.

// Creates a stream that does not synchronise with the legacy default stream.
absl::StatusOr<Stream> CreateStream(Device* device);
// Creates an event whose waiters sleep.
absl::StatusOr<Event> CreateEvent(Device* device);
absl::StatusOr<DeviceBlock> AllocateOnDevice(Device* device, size_t bytes);
// Allocates host memory whose pages stay in place, for all devices.
absl::StatusOr<PinnedBlock> AllocatePinned(Device* device, size_t bytes);
// Pins [memory, memory + bytes), which are whole pages, until the result is
// destroyed.
absl::StatusOr<PinnedRange> Pin(Device* device, void* memory, size_t bytes);
// Loads the kernels of `image`, an argument for cuModuleLoadData().
absl::StatusOr<Module> LoadModule(Device* device, const void* image);

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_HANDLES_H_
