// Makes the module of penstock's package with two simulated devices, and
// functions for tests, called by ctypes.

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tensor_service/device_memory.h"
#include "tensor_service/device_stream.h"
#include "tests/tensor_service/fake_device.h"

namespace {

using penstock::tensor::Device;
using penstock::tensor::DeviceEvent;
using penstock::tensor::FakeDevices;
using penstock::tensor::SetDeviceMemory;
using penstock::tensor::Stream;

class Served final : public FakeDevices {
 public:
  Served() : FakeDevices(2) {}
  absl::Status ServeTransports() override {
    if (!is_late) return absl::OkStatus();
    return absl::FailedPreconditionError("the fake devices come too late");
  }
  absl::StatusOr<std::shared_ptr<const DeviceEvent>> Record(
      const Device& device, Stream stream) override {
    if (is_slow) absl::SleepFor(absl::Milliseconds(200));
    return FakeDevices::Record(device, stream);
  }
  std::atomic<bool> is_late{false};
  std::atomic<bool> is_slow{false};
};

Served* Devices() {
  static auto* const devices = new Served;
  return devices;
}

Device Cuda(int index) { return {Device::Kind::kCuda, index}; }

const bool is_set = [] {
  SetDeviceMemory(Devices());
  return true;
}();

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// Sets whether the process has devices.
EXPORTED void FakeEnable(int enable) {
  SetDeviceMemory(enable != 0 ? Devices() : nullptr);
}

// Sets whether transports existed before the devices were set.
EXPORTED void FakeBeLate(int late) { Devices()->is_late = late != 0; }

// Sets whether recording a stream's position takes a while.
EXPORTED void FakeBeSlow(int slow) { Devices()->is_slow = slow != 0; }

// Stops or continues all streams.
EXPORTED void FakeStall(int stall) { Devices()->SetStalled(stall != 0); }

EXPORTED uint64_t FakeMalloc(int device, uint64_t bytes) {
  return Devices()->Malloc(Cuda(device), bytes);
}

EXPORTED void FakeFree(uint64_t address) { Devices()->Free(address); }

EXPORTED void FakeWrite(uint64_t address, const void* from, uint64_t bytes) {
  memcpy(Devices()->Peek(address), from, bytes);
}

EXPORTED void FakeRead(uint64_t address, void* to, uint64_t bytes) {
  memcpy(to, Devices()->Peek(address), bytes);
}

// Queues a kernel that sets each byte.
EXPORTED void FakeQueueSet(int device, uint64_t stream, uint64_t address,
                           int value, uint64_t bytes) {
  char* const memory = Devices()->Peek(address);
  Devices()->Queue(Cuda(device), Stream{stream},
                   [memory, value, bytes] { memset(memory, value, bytes); });
}

EXPORTED uint64_t FakeQueued(int device, uint64_t stream) {
  return Devices()->Queued(Cuda(device), Stream{stream});
}

// Runs all work in a stream.
EXPORTED int FakeRun(int device, uint64_t stream) {
  const auto event = Devices()->Record(Cuda(device), Stream{stream});
  return event.ok() && Devices()->Await(**event).ok() ? 1 : 0;
}

EXPORTED void FakeFailAfter(int calls) { Devices()->FailAfter(calls); }

EXPORTED uint64_t FakeAllocations() { return Devices()->allocations(); }
