// Messages with slices in the memory of devices, over every path: the other
// side gets the bytes, whatever it is, or the call gets an error.

#include "penstock/device_slices.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "tests/e2e/raw.h"
#include "tests/e2e/stack_test.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/memory/device_ranges.h"

namespace penstock::e2e {
namespace {

constexpr size_t kLarge = 300 * 1000;

// The process's devices.
memory::FakeDeviceAccess* Device() {
  static auto* const device = [] {
    auto* const made = new memory::FakeDeviceAccess;
    const absl::Status named = memory::SetDevicesOfProcess(made);
    EXPECT_TRUE(named.ok()) << named;
    return made;
  }();
  return device;
}

// Returns a slice whose bytes only a device can reach.
grpc::Slice OnDevice(const memory::Bytes& bytes,
                     memory::DeviceRange::Await await = nullptr) {
  struct Declared {
    memory::Bytes bytes;
    memory::DeviceRange range;
  };
  auto* const declared = new Declared{
      bytes, {{bytes.data, bytes.size}, Device(), std::move(await)}};
  return grpc::Slice(
      const_cast<uint8_t*>(bytes.data), bytes.size,
      [](void* owned) { delete static_cast<Declared*>(owned); }, declared);
}
grpc::Slice OnDevice(const std::string& content) {
  return OnDevice(Device()->Put(content));
}

grpc::ByteBuffer MessageOf(std::vector<grpc::Slice> slices) {
  return grpc::ByteBuffer(slices.data(), slices.size());
}

// Sends back what it gets, copied into slices on the device.
class DeviceEchoService final : public grpc::CallbackGenericService {
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    Reactor() { StartRead(&message_); }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::OK);
      message_ = MessageOf({grpc::Slice("head"), OnDevice(ToBytes(message_)),
                            grpc::Slice("tail")});
      StartWrite(&message_);
    }
    void OnWriteDone(bool ok) override {
      if (ok) return StartRead(&message_);
      Finish(grpc::Status(grpc::StatusCode::ABORTED, "cannot answer"));
    }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer message_;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext*) override {
    return new Reactor;
  }
};

class DeviceSlicesTest : public StackTest {
 protected:
  DeviceSlicesTest() { Device(); }
  ~DeviceSlicesTest() override {
    Device()->FailCopies(absl::OkStatus());
    StopServing(std::chrono::milliseconds(0));
  }

  template <typename Service>
  void ServeGeneric(Service* service) {
    Serve(&none_, [service](grpc::ServerBuilder* builder) {
      builder->RegisterCallbackGenericService(service);
    });
  }

  // Returns what the server sends back, or why it does not.
  static grpc::Status Send(
      const std::shared_ptr<grpc::Channel>& channel,
      const grpc::ByteBuffer& message, std::string* echo,
      grpc_compression_algorithm compression = GRPC_COMPRESS_NONE) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(60));
    context.set_compression_algorithm(compression);
    RawStream stream(channel, &context);
    stream.Write(message);
    stream.WritesDone();
    *echo = stream.Read().value_or("");
    return stream.Finish();
  }

  TestServiceImpl none_;
  RawEchoService echo_;
  DeviceEchoService device_echo_;
};

TEST_P(DeviceSlicesTest, ServerGetsTheBytesOfAnyMixture) {
  ServeGeneric(&echo_);
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const std::vector<size_t> sizes = {0,     1,     100,    65535,
                                     65536, 65537, kLarge, 700 * 1000};
  for (int i = 0; i < 30; ++i) {
    std::vector<grpc::Slice> slices;
    std::string expected;
    for (unsigned count = random() % 6; count > 0; --count) {
      const std::string bytes =
          Pattern(sizes[random() % sizes.size()], random() % 100 + 1);
      const bool on_device = !bytes.empty() && random() % 2 == 0;
      slices.push_back(on_device ? OnDevice(bytes) : grpc::Slice(bytes));
      expected += bytes;
    }
    std::string echo;
    const grpc::Status status =
        Send(channel(), MessageOf(std::move(slices)), &echo,
             i % 5 == 4 ? GRPC_COMPRESS_GZIP : GRPC_COMPRESS_NONE);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_TRUE(echo == expected) << "message " << i;
  }
  ExpectPath(*channel());
}

TEST_P(DeviceSlicesTest, ClientGetsTheBytes) {
  ServeGeneric(&device_echo_);
  for (const size_t size : {size_t{100}, kLarge, size_t{3} << 20}) {
    std::string echo;
    ASSERT_TRUE(Send(channel(), ToBuffer(Pattern(size)), &echo).ok());
    EXPECT_TRUE(echo == "head" + Pattern(size) + "tail") << size;
  }
}

TEST_P(DeviceSlicesTest, ChannelThatCompressesReadsThem) {
  ServeGeneric(&echo_);
  grpc::ChannelArguments arguments;
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_GZIP);
  const std::string bytes(kLarge, 'c');
  std::string echo;
  ASSERT_TRUE(
      Send(NewChannel(arguments), MessageOf({OnDevice(bytes)}), &echo).ok());
  EXPECT_TRUE(echo == bytes);
}

TEST_P(DeviceSlicesTest, BytesAreReadOnceTheyAreThere) {
  ServeGeneric(&echo_);
  const memory::Bytes buffer = Device()->Put(std::string(kLarge, 'Z'));
  const std::string bytes = Pattern(kLarge);
  const auto produce = [&] {
    return Device()->CopyFromHost(
        {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()},
        const_cast<uint8_t*>(buffer.data));
  };
  std::string echo;
  ASSERT_TRUE(
      Send(channel(), MessageOf({OnDevice(buffer, produce)}), &echo).ok());
  EXPECT_TRUE(echo == bytes);
}

TEST_P(DeviceSlicesTest, ErrorOfTheProducerIsTheCallsStatus) {
  ServeGeneric(&echo_);
  const grpc::ByteBuffer message = MessageOf(
      {grpc::Slice("head"), OnDevice(Device()->Put(Pattern(kLarge)), [] {
         return absl::DataLossError("the kernel failed");
       })});
  std::string echo;
  const grpc::Status status = Send(channel(), message, &echo);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(status.error_message(), "the kernel failed");
  ASSERT_TRUE(Send(channel(), ToBuffer("next"), &echo).ok());
  EXPECT_EQ(echo, "next");
}

// Whoever copies, the call ends with an error, and the connection goes on.
TEST_P(DeviceSlicesTest, CopyThatFailsEndsTheCall) {
  ServeGeneric(&echo_);
  Device()->FailCopies(absl::InternalError("cuMemcpy: illegal address"));
  std::string echo;
  const auto begin = std::chrono::steady_clock::now();
  const grpc::Status status =
      Send(channel(), MessageOf({OnDevice(Pattern(kLarge))}), &echo);
  EXPECT_FALSE(status.ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  Device()->FailCopies(absl::OkStatus());
  ASSERT_TRUE(
      Send(channel(), MessageOf({OnDevice(Pattern(kLarge))}), &echo).ok());
  EXPECT_TRUE(echo == Pattern(kLarge));
}

TEST_P(DeviceSlicesTest, ServersCopyThatFailsEndsTheCall) {
  ServeGeneric(&device_echo_);
  std::string echo;
  ASSERT_TRUE(Send(channel(), ToBuffer("before"), &echo).ok());
  Device()->FailCopies(absl::InternalError("cuMemcpy: illegal address"));
  EXPECT_FALSE(Send(channel(), ToBuffer(Pattern(kLarge)), &echo).ok());
  Device()->FailCopies(absl::OkStatus());
  EXPECT_TRUE(Send(channel(), ToBuffer("after"), &echo).ok());
}

INSTANTIATE_TEST_SUITE_P(Paths, DeviceSlicesTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
