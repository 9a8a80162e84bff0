// Slices in the memory of a simulated device, and a fixture whose calls carry
// these slices.

#ifndef PENSTOCK_TESTS_TRANSPORT_GRPC_DEVICE_SLICES_TEST_UTIL_H_
#define PENSTOCK_TESTS_TRANSPORT_GRPC_DEVICE_SLICES_TEST_UTIL_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "tests/e2e/raw.h"
#include "tests/e2e/stack_test.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/memory/device_ranges.h"

namespace penstock::e2e {

constexpr size_t kLarge = 300 * 1000;

// Returns the process's devices.
inline memory::FakeDeviceAccess* Device() {
  static auto* const device = [] {
    auto* const made = new memory::FakeDeviceAccess;
    const absl::Status named = memory::SetDevicesOfProcess(made);
    EXPECT_TRUE(named.ok()) << named;
    return made;
  }();
  return device;
}

// Returns a slice in device memory, which the CPU cannot read.
inline grpc::Slice OnDevice(const memory::Bytes& bytes,
                            memory::DeviceRange::Poll poll = nullptr) {
  struct Declared {
    memory::Bytes bytes;
    memory::DeviceRange range;
  };
  auto* const declared = new Declared{
      bytes, {{bytes.data, bytes.size}, Device(), std::move(poll)}};
  return grpc::Slice(
      const_cast<uint8_t*>(bytes.data), bytes.size,
      [](void* owned) { delete static_cast<Declared*>(owned); }, declared);
}
inline grpc::Slice OnDevice(const std::string& content) {
  return OnDevice(Device()->Put(content));
}

// Simulates a producer of bytes, which reports when the bytes are ready.
struct Producer {
  std::atomic<bool> ready{false};
  std::atomic<int> asked{0};

  memory::DeviceRange::Poll AsPoll() {
    return [this]() -> absl::optional<absl::Status> {
      ++asked;
      if (!ready) return absl::nullopt;
      return absl::OkStatus();
    };
  }
  // Waits until the producer was polled `times` times.
  void AwaitAsked(int times) {
    while (asked < times) std::this_thread::yield();
  }
};

inline grpc::ByteBuffer MessageOf(std::vector<grpc::Slice> slices) {
  return grpc::ByteBuffer(slices.data(), slices.size());
}

class DeviceSlicesTest : public StackTest {
 protected:
  DeviceSlicesTest() { Device(); }
  ~DeviceSlicesTest() override {
    Device()->FailCopies(absl::OkStatus());
    Device()->FailOpens(absl::OkStatus());
    StopServing(std::chrono::milliseconds(0));
  }

  template <typename Service>
  void ServeGeneric(Service* service) {
    Serve(&none_, [service](grpc::ServerBuilder* builder) {
      builder->RegisterCallbackGenericService(service);
    });
  }

  // Returns the server's echo, or its error.
  static grpc::Status Send(
      const std::shared_ptr<grpc::Channel>& channel,
      const grpc::ByteBuffer& message, std::string* echo,
      grpc_compression_algorithm compression = GRPC_COMPRESS_NONE) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(60));
    // Sets an explicit algorithm, which overrides the channel's.
    if (compression != GRPC_COMPRESS_NONE) {
      context.set_compression_algorithm(compression);
    }
    RawStream stream(channel, &context);
    stream.Write(message);
    stream.WritesDone();
    *echo = stream.Read().value_or("");
    return stream.Finish();
  }

  TestServiceImpl none_;
  RawEchoService echo_;
};

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_TRANSPORT_GRPC_DEVICE_SLICES_TEST_UTIL_H_
