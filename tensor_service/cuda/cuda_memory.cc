#include "tensor_service/cuda/cuda_memory.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "transport/base/log.h"
#include "transport/device/allocation.h"
#include "transport/device/handles.h"
#include "transport/device/library.h"
#include "transport/memory/device_access.h"
#include "transport/memory/device_ranges.h"

namespace penstock::tensor {
namespace {

// Limits pinned memory to the maximal size of the shared-memory pool.
constexpr uint64_t kPinnedBudget = uint64_t{1} << 30;

class CudaEvent : public DeviceEvent {
 public:
  CudaEvent(device::Device* on, device::Event event)
      : on_(on), event_(std::move(event)) {}

  Device device() const override {
    return {Device::Kind::kCuda, on_->ordinal()};
  }
  device::Device* on() const { return on_; }
  device::abi::Event get() const { return event_.get(); }

 private:
  device::Device* const on_;
  const device::Event event_;
};

// The copies of one device, and the events that they wait for.
template <typename Copy>
struct Batch {
  std::vector<Copy> copies;
  // The events, held until the copies have run.
  std::vector<std::shared_ptr<const DeviceEvent>> events;
  std::vector<device::abi::Event> after;

  void ComeAfter(const Buffer& buffer) {
    std::shared_ptr<const DeviceEvent> ready = buffer.ready();
    if (ready == nullptr) return;
    after.push_back(static_cast<const CudaEvent&>(*ready).get());
    events.push_back(std::move(ready));
  }
};

using HostBatch = Batch<device::HostCopy>;

absl::Span<const uint8_t> RangeOf(const Buffer& buffer) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is one
  return {reinterpret_cast<const uint8_t*>(buffer.device_address()),
          buffer.size()};
}

// The memory of a lent slice.
struct Lent {
  Lent(std::shared_ptr<Buffer> of, memory::DeviceAccess* access,
       memory::DeviceRange::Poll poll)
      : buffer(std::move(of)),
        range(RangeOf(*buffer), access, std::move(poll)) {}

  const std::shared_ptr<Buffer> buffer;  // destroyed last
  const memory::DeviceRange range;
};

// Returns the event's result, or nothing if the event has not completed.
absl::optional<absl::Status> Query(const DeviceEvent& event) {
  const auto& cuda = static_cast<const CudaEvent&>(event);
  absl::StatusOr<device::Device::Entered> entered = cuda.on()->Enter();
  if (!entered.ok()) return entered.status();
  const device::abi::Result asked = cuda.on()->api()->EventQuery(cuda.get());
  if (asked == device::abi::kNotReady) return absl::nullopt;
  return cuda.on()->Check(asked, "ask whether a stream is through");
}

// Converts a stream. A CUstream's number is its address; see Stream.
absl::StatusOr<device::abi::Stream> ToCuda(Stream stream) {
  if (stream.handle == 0) {
    return absl::InvalidArgumentError(
        "stream 0 is one or the other of CUDA's default streams: say 1, the "
        "legacy one, or 2, each thread's own");
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is one
  return reinterpret_cast<device::abi::Stream>(stream.handle);
}

}  // namespace

absl::StatusOr<DeviceMemory*> CudaMemory::OfProcess() {
  static const auto* const memory = [] {
    absl::StatusOr<device::Api*> api = device::OpenLibrary();
    if (!api.ok()) return new absl::StatusOr<DeviceMemory*>(api.status());
    auto* const made = new CudaMemory(*api);
    // Ignores an error, which Lend() and later calls of ServeTransports()
    // report.
    made->ServeTransports().IgnoreError();
    return new absl::StatusOr<DeviceMemory*>(made);
  }();
  return *memory;
}

CudaMemory::CudaMemory(device::Api* api)
    : devices_(api, kPinnedBudget),
      served_(absl::FailedPreconditionError(
          "transports were not told of this memory (ServeTransports())")) {}

absl::StatusOr<device::OpenDevice*> CudaMemory::Open(const Device& device) {
  if (device.kind == Device::Kind::kCuda) return devices_.At(device.index);
  return absl::InvalidArgumentError(
      absl::StrCat(device.ToString(), " is no CUDA device"));
}

absl::StatusOr<std::shared_ptr<Buffer>> CudaMemory::Allocate(
    const Device& device, size_t bytes) {
  absl::StatusOr<device::OpenDevice*> open = Open(device);
  if (!open.ok()) return open.status();
  // Allocates at least one byte, because CUDA cannot allocate 0 bytes.
  absl::StatusOr<device::DeviceBlock> block = device::AllocateOnDevice(
      (*open)->device.get(), std::max<size_t>(bytes, 1));
  if (!block.ok()) return block.status();
  const uintptr_t address = block->get();
  std::shared_ptr<const void> use = access_.Own(*std::move(block));
  return Buffer::WrapDevice(device, address, bytes, /*writable=*/true,
                            [use]() mutable { use.reset(); });
}

absl::StatusOr<Device> CudaMemory::DeviceOf(uintptr_t address) {
  absl::StatusOr<int> ordinal = devices_.OrdinalOf(address);
  if (!ordinal.ok()) return ordinal.status();
  return Device{Device::Kind::kCuda, *ordinal};
}

absl::Status CudaMemory::Copy(absl::Span<const CopyToHost> copies) {
  std::map<Device, HostBatch> batches;
  for (const CopyToHost& copy : copies) {
    HostBatch& batch = batches[copy.from->device()];
    batch.copies.push_back(
        {copy.from->device_address() + copy.offset, copy.to, copy.size});
    batch.ComeAfter(*copy.from);
  }
  for (const auto& [device, batch] : batches) {
    absl::StatusOr<device::OpenDevice*> open = Open(device);
    if (!open.ok()) return open.status();
    absl::Status copied = (*open)->copier.ToHost(batch.copies, batch.after);
    if (!copied.ok()) return copied;
  }
  return absl::OkStatus();
}

absl::Status CudaMemory::Copy(absl::Span<const CopyFromHost> copies) {
  std::map<Device, HostBatch> batches;
  for (const CopyFromHost& copy : copies) {
    HostBatch& batch = batches[copy.to->device()];
    batch.copies.push_back({copy.to->device_address() + copy.offset,
                            const_cast<char*>(copy.from), copy.size});
    batch.ComeAfter(*copy.to);
  }
  for (const auto& [device, batch] : batches) {
    absl::StatusOr<device::OpenDevice*> open = Open(device);
    if (!open.ok()) return open.status();
    absl::Status copied = (*open)->copier.FromHost(batch.copies, batch.after);
    if (!copied.ok()) return copied;
  }
  return absl::OkStatus();
}

absl::Status CudaMemory::Copy(absl::Span<const CopyOnDevice> copies) {
  std::map<std::pair<Device, Device>, Batch<device::DeviceCopy>> batches;
  for (const CopyOnDevice& copy : copies) {
    Batch<device::DeviceCopy>& batch =
        batches[{copy.from->device(), copy.to->device()}];
    batch.copies.push_back(
        {copy.from->device_address(), copy.to->device_address(), copy.size});
    batch.ComeAfter(*copy.from);
    batch.ComeAfter(*copy.to);
  }
  for (const auto& [devices, batch] : batches) {
    absl::StatusOr<device::OpenDevice*> from = Open(devices.first);
    if (!from.ok()) return from.status();
    absl::StatusOr<device::OpenDevice*> to = Open(devices.second);
    if (!to.ok()) return to.status();
    absl::Status copied = (*from)->copier.OnDevice((*to)->device.get(),
                                                   batch.copies, batch.after);
    if (!copied.ok()) return copied;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const DeviceEvent>> CudaMemory::Record(
    const Device& device, Stream stream) {
  absl::StatusOr<device::abi::Stream> in = ToCuda(stream);
  if (!in.ok()) return in.status();
  absl::StatusOr<device::OpenDevice*> open = Open(device);
  if (!open.ok()) return open.status();
  device::Device* const on = (*open)->device.get();
  absl::StatusOr<device::Event> event = device::CreateEvent(on);
  if (!event.ok()) return event.status();
  absl::StatusOr<device::Device::Entered> entered = on->Enter();
  if (!entered.ok()) return entered.status();
  absl::Status usable = on->CheckNotCaptured(*in);
  if (!usable.ok()) return usable;
  absl::Status recorded =
      on->Check(on->api()->EventRecord(event->get(), *in), "record an event");
  if (!recorded.ok()) return recorded;
  return std::make_shared<const CudaEvent>(on, *std::move(event));
}

absl::Status CudaMemory::Order(const DeviceEvent& event, const Device& device,
                               Stream stream) {
  absl::StatusOr<device::abi::Stream> in = ToCuda(stream);
  if (!in.ok()) return in.status();
  absl::StatusOr<device::OpenDevice*> open = Open(device);
  if (!open.ok()) return open.status();
  device::Device* const on = (*open)->device.get();
  absl::StatusOr<device::Device::Entered> entered = on->Enter();
  if (!entered.ok()) return entered.status();
  absl::Status usable = on->CheckNotCaptured(*in);
  if (!usable.ok()) return usable;
  return on->Check(on->api()->StreamWaitEvent(
                       *in, static_cast<const CudaEvent&>(event).get(), 0),
                   "have a stream wait");
}

absl::Status CudaMemory::Await(const DeviceEvent& event) {
  const auto& cuda = static_cast<const CudaEvent&>(event);
  absl::StatusOr<device::Device::Entered> entered = cuda.on()->Enter();
  if (!entered.ok()) return entered.status();
  return cuda.on()->Check(cuda.on()->api()->EventSynchronize(cuda.get()),
                          "wait for a stream");
}

absl::StatusOr<bool> CudaMemory::HasCompleted(const DeviceEvent& event) {
  const absl::optional<absl::Status> came = Query(event);
  if (!came.has_value()) return false;
  if (!came->ok()) return *came;
  return true;
}

absl::Status CudaMemory::ServeTransports() {
  absl::MutexLock lock(&mu_);
  if (memory::DevicesOfProcess() == &access_) return absl::OkStatus();
  served_ = memory::SetDevicesOfProcess(&access_);
  if (absl::IsAlreadyExists(served_)) {
    served_ = absl::FailedPreconditionError(served_.message());
  }
  return served_;
}

absl::Status CudaMemory::CheckMayBeLent(const Buffer& buffer) {
  if (memory::DevicesOfProcess() != &access_) {
    absl::MutexLock lock(&mu_);
    return served_;
  }
  if (buffer.size() < memory::kMinDeviceBytes) {
    return absl::FailedPreconditionError(absl::StrCat(
        buffer.size(), " bytes are copied faster than they are lent"));
  }
  if (buffer.device().is_host()) {
    return absl::FailedPreconditionError("memory of the host is not lent");
  }
  absl::StatusOr<device::OpenDevice*> open = Open(buffer.device());
  if (!open.ok()) return open.status();
  absl::Status found =
      device::AllocationOf((*open)->device.get(), RangeOf(buffer)).status();
  // Refuses a range that is not within one allocation, for example several
  // adjacent allocations (PyTorch's expandable_segments).
  if (absl::IsInvalidArgument(found) || absl::IsNotFound(found)) {
    return absl::FailedPreconditionError(found.message());
  }
  return found;
}

void CudaMemory::TellOnce(const absl::Status& refused) {
  if (has_told_.exchange(true)) return;
  base::LogInfo(absl::StrCat(
      "memory of a device is sent by way of the host's: ", refused.message(),
      " (this is logged once; other memory may have other reasons)"));
}

absl::StatusOr<grpc::Slice> CudaMemory::Lend(std::shared_ptr<Buffer> buffer) {
  absl::Status checked = CheckMayBeLent(*buffer);
  if (!checked.ok()) {
    if (buffer->size() >= memory::kMinDeviceBytes) TellOnce(checked);
    return checked;
  }
  memory::DeviceRange::Poll poll;
  if (std::shared_ptr<const DeviceEvent> ready = buffer->ready()) {
    poll = [ready] { return Query(*ready); };
  }
  const absl::Span<const uint8_t> range = RangeOf(*buffer);
  auto* const lent = new Lent(std::move(buffer), &access_, std::move(poll));
  return grpc::Slice(
      const_cast<uint8_t*>(range.data()), range.size(),
      [](void* data) { delete static_cast<Lent*>(data); }, lent);
}

Device CudaMemory::DeviceOfSlice(const void* address) const {
  if (memory::FindDevice(address) == nullptr) return Device();
  absl::StatusOr<int> ordinal =
      devices_.OrdinalOf(reinterpret_cast<uintptr_t>(address));
  // Returns device 0 if the device of the memory cannot be determined, because
  // it is lost. The memory is still not the host's, and copying from there
  // reports the error.
  return Device{Device::Kind::kCuda, ordinal.ok() ? *ordinal : 0};
}

}  // namespace penstock::tensor
