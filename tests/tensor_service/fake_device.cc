#include "tests/tensor_service/fake_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock::tensor {

struct FakeDevices::Event final : public DeviceEvent {
  Event(const Device& of, uintptr_t in, uint64_t at)
      : where(of), stream(in), after(at) {}
  Device device() const override { return where; }

  const Device where;
  const uintptr_t stream;
  const uint64_t after;  // amount of the stream's work
};

absl::Status FakeDevices::CallLocked(const Device& device) {
  ++calls_;
  if (left_ == 0) {
    left_ = -1;
    failed_ = true;
    return absl::InternalError("the fake device was told to fail");
  }
  if (left_ > 0) --left_;
  if (device.is_host() || device.index < 0 || device.index >= devices_) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no device ", device.ToString()));
  }
  return absl::OkStatus();
}

uintptr_t FakeDevices::Malloc(const Device& device, size_t bytes) {
  const size_t mapped = std::max<size_t>(bytes, 1);
  const int file = memfd_create("fake device", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(mapped)) != 0) abort();
  void* const behind =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* const front = mmap(nullptr, mapped, PROT_NONE, MAP_SHARED, file, 0);
  close(file);
  if (behind == MAP_FAILED || front == MAP_FAILED) abort();
  const auto address = reinterpret_cast<uintptr_t>(front);
  absl::MutexLock lock(&mu_);
  memory_[address] = {device, mapped, static_cast<char*>(behind)};
  return address;
}

void FakeDevices::Free(uintptr_t address) {
  absl::MutexLock lock(&mu_);
  const auto found = memory_.find(address);
  if (found == memory_.end()) abort();
  munmap(found->second.behind, found->second.size);
  munmap(reinterpret_cast<void*>(address), found->second.size);
  memory_.erase(found);
}

char* FakeDevices::Peek(uintptr_t address) {
  absl::MutexLock lock(&mu_);
  auto it = memory_.upper_bound(address);
  if (it == memory_.begin()) abort();
  --it;
  if (address - it->first > it->second.size) abort();
  return it->second.behind + (address - it->first);
}

void FakeDevices::Queue(const Device& device, Stream stream,
                        std::function<void()> work) {
  absl::MutexLock lock(&mu_);
  streams_[{device.index, stream.handle}].queue.push_back(std::move(work));
}

size_t FakeDevices::Queued(const Device& device, Stream stream) {
  absl::MutexLock lock(&mu_);
  return streams_[{device.index, stream.handle}].queue.size();
}

bool FakeDevices::RunOneLocked(const Event& event) {
  Work& work = streams_[{event.where.index, event.stream}];
  if (work.ran >= event.after) return true;
  const std::function<void()> next = std::move(work.queue.front());
  work.queue.pop_front();
  ++work.ran;
  next();
  return false;
}

void FakeDevices::RunLocked(const Event& event) {
  while (!RunOneLocked(event)) {
  }
}

absl::StatusOr<char*> FakeDevices::FindLocked(const Buffer& buffer,
                                              size_t offset, size_t size) {
  const uintptr_t address = buffer.device_address();
  auto it = memory_.upper_bound(address);
  if (it != memory_.begin() && offset <= buffer.size() &&
      size <= buffer.size() - offset) {
    --it;
    const size_t at = address - it->first + offset;
    if (at + size <= it->second.size && it->second.device == buffer.device()) {
      return it->second.behind + at;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no memory of ", buffer.device().ToString(), " at ", address,
                   " + ", offset, ", of ", size, " bytes"));
}

absl::StatusOr<char*> FakeDevices::ReadyLocked(const Buffer& buffer,
                                               size_t offset, size_t size) {
  const auto ready = buffer.ready();
  if (ready != nullptr) RunLocked(static_cast<const Event&>(*ready));
  return FindLocked(buffer, offset, size);
}

absl::StatusOr<std::shared_ptr<Buffer>> FakeDevices::Allocate(
    const Device& device, size_t bytes) {
  {
    absl::MutexLock lock(&mu_);
    absl::Status status = CallLocked(device);
    if (!status.ok()) return status;
  }
  const uintptr_t address = Malloc(device, bytes);
  return Buffer::WrapDevice(device, address, bytes, /*writable=*/true,
                            [this, address] { Free(address); });
}

absl::StatusOr<Device> FakeDevices::DeviceOf(uintptr_t address) {
  absl::MutexLock lock(&mu_);
  absl::Status status = CallLocked({Device::Kind::kCuda, 0});
  if (!status.ok()) return status;
  auto it = memory_.upper_bound(address);
  if (it != memory_.begin()) {
    --it;
    if (address - it->first < it->second.size) return it->second.device;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no device has memory at ", address));
}

absl::Status FakeDevices::Copy(absl::Span<const CopyToHost> copies) {
  absl::MutexLock lock(&mu_);
  ++copies_;
  absl::Status status = CallLocked(copies.at(0).from->device());
  if (!status.ok()) return status;
  for (const CopyToHost& copy : copies) {
    const auto from = ReadyLocked(*copy.from, copy.offset, copy.size);
    if (!from.ok()) return from.status();
    memcpy(copy.to, *from, copy.size);
  }
  return absl::OkStatus();
}

absl::Status FakeDevices::Copy(absl::Span<const CopyFromHost> copies) {
  absl::MutexLock lock(&mu_);
  ++copies_;
  absl::Status status = CallLocked(copies.at(0).to->device());
  if (!status.ok()) return status;
  for (const CopyFromHost& copy : copies) {
    const auto to = ReadyLocked(*copy.to, copy.offset, copy.size);
    if (!to.ok()) return to.status();
    memcpy(*to, copy.from, copy.size);
  }
  return absl::OkStatus();
}

absl::Status FakeDevices::Copy(absl::Span<const CopyOnDevice> copies) {
  absl::MutexLock lock(&mu_);
  ++copies_;
  absl::Status status = CallLocked(copies.at(0).to->device());
  if (!status.ok()) return status;
  for (const CopyOnDevice& copy : copies) {
    const auto from = ReadyLocked(*copy.from, 0, copy.size);
    const auto to = ReadyLocked(*copy.to, 0, copy.size);
    if (!from.ok()) return from.status();
    if (!to.ok()) return to.status();
    memmove(*to, *from, copy.size);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const DeviceEvent>> FakeDevices::Record(
    const Device& device, Stream stream) {
  absl::MutexLock lock(&mu_);
  absl::Status status = CallLocked(device);
  if (!status.ok()) return status;
  if (stream.handle == 0) {
    return absl::InvalidArgumentError("stream 0 is none: give 1 or 2");
  }
  const Work& work = streams_[{device.index, stream.handle}];
  return std::make_shared<Event>(device, stream.handle,
                                 work.ran + work.queue.size());
}

absl::Status FakeDevices::Order(const DeviceEvent& event, const Device& device,
                                Stream stream) {
  absl::MutexLock lock(&mu_);
  absl::Status status = CallLocked(device);
  if (!status.ok()) return status;
  const auto& of = static_cast<const Event&>(event);
  streams_[{device.index, stream.handle}].queue.push_back(
      [this, waits = Event(of.where, of.stream, of.after)]()
          ABSL_NO_THREAD_SAFETY_ANALYSIS { RunLocked(waits); });
  return absl::OkStatus();
}

absl::Status FakeDevices::Await(const DeviceEvent& event) {
  absl::MutexLock lock(&mu_);
  absl::Status status = CallLocked(event.device());
  if (!status.ok()) return status;
  mu_.Await(absl::Condition(
      +[](bool* stalled) { return !*stalled; }, &stalled_));
  RunLocked(static_cast<const Event&>(event));
  return absl::OkStatus();
}

absl::StatusOr<bool> FakeDevices::HasCompleted(const DeviceEvent& event) {
  absl::MutexLock lock(&mu_);
  absl::Status status = CallLocked(event.device());
  if (!status.ok()) return status;
  return !stalled_ && RunOneLocked(static_cast<const Event&>(event));
}

absl::StatusOr<grpc::Slice> FakeDevices::Lend(std::shared_ptr<Buffer> buffer) {
  const int every = lend_every_;
  if (every == 0 || lends_.fetch_add(1) % every != 0) {
    return DeviceMemory::Lend(std::move(buffer));
  }
  {
    absl::MutexLock lock(&mu_);
    const auto there = ReadyLocked(*buffer, 0, buffer->size());
    if (!there.ok()) return there.status();
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): nobody follows it
  auto* const address = reinterpret_cast<void*>(buffer->device_address());
  const size_t size = buffer->size();
  return grpc::Slice(
      address, size,
      [](void* held) { delete static_cast<std::shared_ptr<Buffer>*>(held); },
      new std::shared_ptr<Buffer>(std::move(buffer)));
}

Device FakeDevices::DeviceOfSlice(const void* address) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  absl::MutexLock lock(&mu_);
  auto it = memory_.upper_bound(at);
  if (it == memory_.begin()) return Device();
  --it;
  return at - it->first < it->second.size ? it->second.device : Device();
}

grpc::Slice FakeDevices::SliceOn(const Device& device,
                                 absl::string_view bytes) {
  struct Held {
    FakeDevices* devices;
    uintptr_t address;
  };
  const uintptr_t address = Malloc(device, bytes.size());
  memcpy(Peek(address), bytes.data(), bytes.size());
  return grpc::Slice(
      // NOLINTNEXTLINE(performance-no-int-to-ptr): nobody follows it
      reinterpret_cast<void*>(address), bytes.size(),
      [](void* arg) {
        const std::unique_ptr<Held> held(static_cast<Held*>(arg));
        held->devices->Free(held->address);
      },
      new Held{this, address});
}

std::string FakeDevices::Flat(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) abort();
  std::string flat;
  for (const grpc::Slice& slice : slices) {
    const bool is_host = DeviceOfSlice(slice.begin()).is_host();
    const char* const bytes =
        is_host ? reinterpret_cast<const char*>(slice.begin())
                : Peek(reinterpret_cast<uintptr_t>(slice.begin()));
    flat.append(bytes, slice.size());
  }
  return flat;
}

void FakeDevices::SetStalled(bool stalled) {
  absl::MutexLock lock(&mu_);
  stalled_ = stalled;
}

void FakeDevices::FailAfter(int calls) {
  absl::MutexLock lock(&mu_);
  left_ = calls;
  failed_ = false;
}

bool FakeDevices::has_failed() {
  absl::MutexLock lock(&mu_);
  return failed_;
}

int FakeDevices::calls() {
  absl::MutexLock lock(&mu_);
  return calls_;
}

int FakeDevices::copies() {
  absl::MutexLock lock(&mu_);
  return copies_;
}

size_t FakeDevices::allocations() {
  absl::MutexLock lock(&mu_);
  return memory_.size();
}

}  // namespace penstock::tensor
