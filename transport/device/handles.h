// Owners of what a device's driver has made.

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
// Destroying fails only if the device is lost, or in a forked child. Nothing
// could be done about it then, so the result is dropped.
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
    // Not Enter(): what a lost device has made is to be destroyed, too.
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
// Memory of another process's that is open here.
using OpenedMemory = Handle<abi::Address, &Api::IpcCloseMemHandle>;
using PinnedBlock = Handle<void*, &Api::MemFreeHost>;
using Module = Handle<abi::Module, &Api::ModuleUnload>;
using PinnedRange = Handle<void*, &Api::MemHostUnregister>;

// Each makes one object, in the device's context. RESOURCE_EXHAUSTED, where
// there is no memory, is a normal answer.

// Does not wait for the legacy default stream, nor is waited for by it.
absl::StatusOr<Stream> CreateStream(Device* device);
// Has who waits for it sleep.
absl::StatusOr<Event> CreateEvent(Device* device);
absl::StatusOr<DeviceBlock> AllocateOnDevice(Device* device, size_t bytes);
// Host memory whose pages stay, for all devices.
absl::StatusOr<PinnedBlock> AllocatePinned(Device* device, size_t bytes);
// Has [memory, memory + bytes), which are whole pages, stay until it is
// destroyed.
absl::StatusOr<PinnedRange> Pin(Device* device, void* memory, size_t bytes);
// Loads kernels; `image` is what cuModuleLoadData() takes.
absl::StatusOr<Module> LoadModule(Device* device, const void* image);

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_HANDLES_H_
