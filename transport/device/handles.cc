#include "transport/device/handles.h"

#include "absl/strings/str_cat.h"

namespace penstock {
namespace device {
namespace {

// Calls `make` in the device's context, and takes ownership of the result.
template <typename Owner, typename T, typename Make>
absl::StatusOr<Owner> MakeOn(Device* device, absl::string_view operation,
                             Make make) {
  absl::StatusOr<Device::Entered> entered = device->Enter();
  if (!entered.ok()) return entered.status();
  T object = T();
  absl::Status made = device->Check(make(device->api(), &object), operation);
  if (!made.ok()) return made;
  return Owner(device, object);
}

}  // namespace

absl::StatusOr<Stream> CreateStream(Device* device) {
  return MakeOn<Stream, abi::Stream>(
      device, "create a stream", [](Api* api, abi::Stream* stream) {
        return api->StreamCreate(stream, abi::kStreamNonBlocking);
      });
}

absl::StatusOr<Event> CreateEvent(Device* device) {
  return MakeOn<Event, abi::Event>(
      device, "create an event", [](Api* api, abi::Event* event) {
        return api->EventCreate(
            event, abi::kEventBlockingSync | abi::kEventDisableTiming);
      });
}

absl::StatusOr<DeviceBlock> AllocateOnDevice(Device* device, size_t bytes) {
  return MakeOn<DeviceBlock, abi::Address>(
      device, absl::StrCat("allocate ", bytes, " bytes"),
      [bytes](Api* api, abi::Address* address) {
        return api->MemAlloc(address, bytes);
      });
}

absl::StatusOr<PinnedBlock> AllocatePinned(Device* device, size_t bytes) {
  return MakeOn<PinnedBlock, void*>(
      device, absl::StrCat("allocate ", bytes, " pinned bytes"),
      [bytes](Api* api, void** memory) {
        return api->MemHostAlloc(memory, bytes, abi::kHostAllocPortable);
      });
}

absl::StatusOr<PinnedRange> Pin(Device* device, void* memory, size_t bytes) {
  return MakeOn<PinnedRange, void*>(
      device, absl::StrCat("pin ", bytes, " bytes"),
      [memory, bytes](Api* api, void** pinned) {
        *pinned = memory;
        return api->MemHostRegister(memory, bytes, abi::kHostRegisterPortable);
      });
}

absl::StatusOr<Module> LoadModule(Device* device, const void* image) {
  return MakeOn<Module, abi::Module>(
      device, "load kernels", [image](Api* api, abi::Module* module) {
        return api->ModuleLoadData(module, image);
      });
}

}  // namespace device
}  // namespace penstock
