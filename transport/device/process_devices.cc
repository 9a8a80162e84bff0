#include "transport/device/process_devices.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/device/dmabuf.h"
#include "transport/device/handles.h"
#include "transport/device/remote_writes.h"

namespace penstock {
namespace device {
namespace {

constexpr size_t kMaxMadeNames = 256;

abi::Address AddressOf(const uint8_t* data) {
  return reinterpret_cast<abi::Address>(data);
}

// Returns FAILED_PRECONDITION for memory that CUDA IPC cannot share.
absl::Status CheckIsShareable(Device* device, abi::Address address) {
  int is_capable = 0;
  const abi::Result asked = device->api()->PointerGetAttribute(
      &is_capable, abi::kPointerIsIpcCapable, address);
  absl::Status checked = device->Check(asked, "ask whether memory is shared");
  if (!checked.ok() || is_capable != 0) return checked;
  return absl::FailedPreconditionError(absl::StrCat(
      "CUDA IPC does not share this memory of ", device->ToString(),
      ", which is of cuMemCreate(), a pool (cudaMallocAsync(), PyTorch's "
      "expandable_segments) or managed: allocate it by cudaMalloc()"));
}

// Returns the driver's handle of the allocation that begins at `address`.
absl::StatusOr<abi::IpcMemHandle> MakeHandle(Device* device,
                                             abi::Address address) {
  absl::StatusOr<Device::Entered> entered = device->Enter();
  if (!entered.ok()) return entered.status();
  absl::Status capable = CheckIsShareable(device, address);
  if (!capable.ok()) return capable;
  abi::IpcMemHandle handle = {};
  const abi::Result made = device->api()->IpcGetMemHandle(&handle, address);
  absl::Status checked = device->Check(made, "share memory by CUDA IPC");
  if (made == abi::kNotSupported || made == abi::kInvalidValue) {
    return absl::FailedPreconditionError(checked.message());
  }
  if (!checked.ok()) return checked;
  return handle;
}

// Returns true if the result means that the memory no longer exists.
bool IsGone(abi::Result result) {
  return result == abi::kInvalidValue || result == abi::kInvalidHandle ||
         result == abi::kMapFailed || result == abi::kNotFound;
}

absl::StatusOr<OpenedMemory> OpenHandle(Device* device,
                                        const abi::IpcMemHandle& handle) {
  absl::StatusOr<Device::Entered> entered = device->Enter();
  if (!entered.ok()) return entered.status();
  abi::Address address = 0;
  const abi::Result opened = device->api()->IpcOpenMemHandle(
      &address, handle, abi::kIpcLazyEnablePeerAccess);
  absl::Status checked =
      device->Check(opened, "open memory of another process");
  if (IsGone(opened)) {
    return absl::UnavailableError(absl::StrCat(
        checked.message(), "; it was freed, or its process has ended"));
  }
  if (!checked.ok()) return checked;
  return OpenedMemory(device, address);
}

}  // namespace

constexpr size_t ProcessDevices::kMaxOpen;

ProcessDevices::ProcessDevices(Devices* devices, size_t max_open)
    : devices_(devices),
      names_(AllocationNames::Create()),
      open_(this, max_open) {
  static_assert(AllocationNames::kBytes <= memory::kMaxDeviceHandleBytes, "");
}

absl::StatusOr<OpenDevice*> ProcessDevices::DeviceOf(const uint8_t* data) {
  absl::StatusOr<int> ordinal = devices_->OrdinalOf(AddressOf(data));
  if (!ordinal.ok()) return ordinal.status();
  return devices_->At(*ordinal);
}

absl::Status ProcessDevices::CopyToHost(absl::Span<const uint8_t> from,
                                        uint8_t* to) {
  if (from.empty()) return absl::OkStatus();
  absl::StatusOr<OpenDevice*> open = DeviceOf(from.data());
  if (!open.ok()) return open.status();
  const HostCopy copy{AddressOf(from.data()), reinterpret_cast<char*>(to),
                      from.size()};
  return (*open)->copier.ToHost({copy}, {});
}

absl::Status ProcessDevices::CopyFromHost(absl::Span<const uint8_t> from,
                                          uint8_t* to) {
  if (from.empty()) return absl::OkStatus();
  absl::StatusOr<OpenDevice*> open = DeviceOf(to);
  if (!open.ok()) return open.status();
  // Casts away const: HostCopy needs a writable address, but a copy from the
  // host only reads.
  auto* const host = reinterpret_cast<char*>(const_cast<uint8_t*>(from.data()));
  const HostCopy copy{AddressOf(to), host, from.size()};
  return (*open)->copier.FromHost({copy}, {});
}

absl::StatusOr<memory::SharedAllocation> ProcessDevices::Share(
    absl::Span<const uint8_t> range) {
  if (!names_.ok()) return names_.status();
  if (open_.IsForeign(AddressOf(range.data()))) {
    return absl::FailedPreconditionError(
        "this process cannot share memory of another process");
  }
  absl::StatusOr<OpenDevice*> open = DeviceOf(range.data());
  if (!open.ok()) return open.status();
  Device* const device = (*open)->device.get();
  absl::StatusOr<Allocation> allocation = AllocationOf(device, range);
  if (!allocation.ok()) return allocation.status();
  absl::StatusOr<uint64_t> id = IdOf(device, allocation->address);
  if (!id.ok()) return id.status();
  absl::StatusOr<std::string> name = NameOf(device, *allocation, *id);
  if (!name.ok()) return name.status();
  memory::SharedAllocation shared;
  shared.id = *id;
  shared.size = allocation->size;
  shared.offset = AddressOf(range.data()) - allocation->address;
  shared.handle = *std::move(name);
  OwnedBlocks::Found owned = owned_.At(allocation->address);
  shared.memory = std::move(owned.memory);
  shared.use = std::move(owned.use);
  return shared;
}

absl::StatusOr<std::string> ProcessDevices::NameOf(Device* device,
                                                   const Allocation& allocation,
                                                   uint64_t id) {
  {
    base::MutexLock lock(&mu_);
    const auto made = made_.find(id);
    if (made != made_.end()) return made->second;
  }
  absl::StatusOr<abi::IpcMemHandle> ipc =
      MakeHandle(device, allocation.address);
  if (!ipc.ok()) return ipc.status();
  AllocationName name;
  absl::Status asked =
      device->Check(device->api()->DeviceGetUuid(&name.device, device->id()),
                    "ask for the UUID");
  if (!asked.ok()) return asked;
  name.size = allocation.size;
  name.address = allocation.address;
  name.id = id;
  name.ipc = *ipc;
  base::MutexLock lock(&mu_);
  std::string& made = made_[id];
  made = names_->Encode(name);
  std::string copy = made;
  if (made_.size() > kMaxMadeNames) made_.erase(made_.begin());
  return copy;
}

absl::StatusOr<memory::OpenAllocation> ProcessDevices::Open(
    absl::string_view handle, uint64_t size) {
  if (!names_.ok()) return names_.status();
  absl::StatusOr<AllocationNames::Decoded> decoded = names_->Decode(handle);
  if (!decoded.ok()) return decoded.status();
  const AllocationName& name = decoded->name;
  if (name.size != size || size == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an allocation of ", name.size, " bytes was announced with ", size));
  }
  if (!decoded->is_own) {
    return open_.Open(handle, [&] { return MapForeign(name); });
  }
  // Looks up the memory each time, because it may have been freed meanwhile.
  absl::StatusOr<Mapping> own = FindOwn(name);
  if (!own.ok()) return own.status();
  return open_.Open(
      handle, [&]() -> absl::StatusOr<Mapping> { return std::move(own); });
}

absl::StatusOr<Mapping> ProcessDevices::FindOwn(const AllocationName& name) {
  const absl::Status gone = absl::UnavailableError(
      "the memory that this process has shared was freed");
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is one
  const auto* const data = reinterpret_cast<const uint8_t*>(name.address);
  absl::StatusOr<OpenDevice*> open = DeviceOf(data);
  if (absl::IsInvalidArgument(open.status())) return gone;
  if (!open.ok()) return open.status();
  Device* const device = (*open)->device.get();
  absl::StatusOr<uint64_t> id = IdOf(device, name.address);
  if (!id.ok()) return id.status();
  if (*id != name.id) return gone;
  Mapping mapping;
  mapping.address = name.address;
  mapping.size = name.size;
  return mapping;
}

absl::StatusOr<Mapping> ProcessDevices::MapForeign(const AllocationName& name) {
  absl::StatusOr<int> ordinal = devices_->OrdinalOf(name.device);
  if (!ordinal.ok()) return ordinal.status();
  absl::StatusOr<OpenDevice*> open = devices_->At(*ordinal);
  if (!open.ok()) return open.status();
  Device* const device = (*open)->device.get();
  absl::StatusOr<OpenedMemory> memory = OpenHandle(device, name.ipc);
  if (!memory.ok()) return memory.status();
  Mapping mapping;
  mapping.address = memory->get();
  mapping.size = name.size;
  mapping.memory = *std::move(memory);
  // Checks the size. The peer may claim a larger size than exists, and a kernel
  // that used that size would make the device unusable.
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is one
  const auto* const data = reinterpret_cast<const uint8_t*>(mapping.address);
  absl::StatusOr<Allocation> there = AllocationOf(device, {data, mapping.size});
  if (!there.ok()) return there.status();
  return mapping;
}

absl::StatusOr<int> ProcessDevices::OrdinalOf(absl::Span<const uint8_t> range) {
  return devices_->OrdinalOf(AddressOf(range.data()));
}

absl::StatusOr<memory::Dmabuf> ProcessDevices::ExportDmabuf(
    absl::Span<const uint8_t> range) {
  if (open_.IsForeign(AddressOf(range.data()))) {
    return absl::FailedPreconditionError(
        "memory of another process has no dma-buf here");
  }
  absl::StatusOr<OpenDevice*> open = DeviceOf(range.data());
  if (!open.ok()) return open.status();
  return ExportPages((*open)->device.get(), range);
}

absl::Status ProcessDevices::FlushWrites(absl::Span<const uint8_t> range) {
  absl::StatusOr<OpenDevice*> open = DeviceOf(range.data());
  if (!open.ok()) return open.status();
  return FlushRemoteWrites((*open)->device.get());
}

}  // namespace device
}  // namespace penstock
