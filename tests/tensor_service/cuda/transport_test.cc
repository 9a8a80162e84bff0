// Tests tensors between devices by calls over shared memory, with the simulated
// driver. No byte goes through the host unless necessary. A separate program,
// because a process sets its transports' devices once.

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/destinations.h"
#include "penstock/device_slices.h"
#include "penstock/penstock.h"
#include "tensor_service/client.h"
#include "tensor_service/cuda/cuda_memory.h"
#include "tensor_service/direct_receive.h"
#include "tensor_service/service.h"
#include "tensor_service/store.h"
#include "tests/tensor_service/enabled_server.h"
#include "tests/transport/device/fake_driver.h"
#include "transport/memory/device_ranges.h"

namespace penstock::tensor {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr Device kFirst = {Device::Kind::kCuda, 0};
constexpr Device kSecond = {Device::Kind::kCuda, 1};
constexpr size_t kLarge = 300 * 1000;

device::FakeDriver* Driver() {
  static auto* const driver = new device::FakeDriver;
  return driver;
}
// Returns the process's object, which is never destroyed.
CudaMemory* Cuda() {
  static auto* const cuda = [] {
    auto* const made = new CudaMemory(Driver());
    const absl::Status served = made->ServeTransports();
    EXPECT_TRUE(served.ok()) << served;
    SetDeviceMemory(made);
    SetDirectReceiver(
        DirectReceiverBy<penstock::Destinations>(&AcceptDeviceSlices));
    return made;
  }();
  return cuda;
}

std::string RandomBytes(std::mt19937* random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>((*random)());
  return bytes;
}

// The numbers of the driver's copies, by direction.
struct Copies {
  int to_host = Driver()->CallsOf("MemcpyDtoHAsync");
  int from_host = Driver()->CallsOf("MemcpyHtoDAsync");
  int on_device = Driver()->CallsOf("MemcpyDtoDAsync") +
                  Driver()->CallsOf("MemcpyPeerAsync");
};

class CudaTransport : public testing::Test {
 protected:
  CudaTransport() {
    Cuda();
    service_ = MakeTensorService(&store_, DeviceTensors::kKeep);
    server_ = std::make_unique<EnabledServer>(service_.get(), Fabric::kShm);
    client_ = std::make_unique<TensorClient>(server_->channel());
    EXPECT_TRUE(client_->List().ok());
  }
  ~CudaTransport() override {
    client_.reset();
    server_.reset();
    EXPECT_THAT(Driver()->violations(), IsEmpty());
  }

  static Tensor OnDevice(const Device& device, const std::string& bytes) {
    std::shared_ptr<Buffer> buffer = *Cuda()->Allocate(device, bytes.size());
    Driver()->Write(buffer->device_address(), bytes);
    return *Tensor::FromBuffer(
        DType::kUint8, {static_cast<int64_t>(bytes.size())}, std::move(buffer));
  }
  static std::string Read(const Tensor& tensor) {
    return Driver()->Read(tensor.buffer()->device_address(),
                          tensor.byte_size());
  }

  TensorStore store_{size_t{1} << 30};
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<EnabledServer> server_;
  std::unique_ptr<TensorClient> client_;
};

TEST_F(CudaTransport, NothingIsCopiedToTheHost) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 20; ++i) {
    const size_t size = 64 * 1024 + random() % (1 << 20);
    const std::string bytes = RandomBytes(&random, size);
    const Device from = random() % 2 == 0 ? kFirst : kSecond;
    const Tensor sent = OnDevice(from, bytes);
    const Copies before;
    ASSERT_TRUE(client_->Put({{{"x", sent}}}).ok());
    const Tensor stored = store_.Get({"x"})->tensors[0].tensor;
    EXPECT_EQ(stored.device(), from);
    EXPECT_EQ(Read(stored), bytes);

    // Draws a destination on either device, and its location.
    const Device to = random() % 2 == 0 ? kFirst : kSecond;
    std::vector<Destination> places = {
        {"x", OnDevice(to, std::string(size, 'Z'))}};
    const auto got =
        client_->Get({"x"}, absl::MakeSpan(places), DeviceTensors::kKeep);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(places[0].used.ok()) << places[0].used;
    EXPECT_EQ(Read(places[0].into), bytes);
    const auto kept = client_->Get({"x"}, {}, DeviceTensors::kKeep);
    ASSERT_TRUE(kept.ok()) << kept.status();
    EXPECT_EQ(kept->tensors[0].tensor.device(), from);
    EXPECT_EQ(Read(kept->tensors[0].tensor), bytes);

    const Copies after;
    EXPECT_EQ(after.to_host - before.to_host, 0);
    EXPECT_EQ(after.from_host - before.from_host, 0);
    EXPECT_EQ(after.on_device - before.on_device, 2)
        << "the store's own, and to the place";
  }
  const auto reports = DescribePaths(*server_->channel());
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_THAT(reports[0].ToString(), HasSubstr("devices' memory in place"));
}

TEST_F(CudaTransport, WhoWantsThemOnTheHostGetsThemThere) {
  std::mt19937 random(1);
  const std::string bytes = RandomBytes(&random, kLarge);
  ASSERT_TRUE(client_->Put({{{"x", OnDevice(kFirst, bytes)}}}).ok());
  const auto got = client_->Get({"x"});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(got->tensors[0].tensor.device().is_host());
  EXPECT_TRUE(got->tensors[0].tensor.bytes() == bytes);
}

// Tests that the server's copy is queued only after work that the sender has
// waited for.
TEST_F(CudaTransport, BytesAreThoseThatTheStreamHasWritten) {
  const device::abi::Stream kernels = Driver()->ProgramStream(0);
  const Tensor plain = OnDevice(kFirst, std::string(kLarge, 'a'));
  const std::shared_ptr<Buffer> buffer = plain.buffer();
  Driver()->QueueFill(kernels, buffer->device_address(), 'b', kLarge);
  auto event =
      Cuda()->Record(kFirst, Stream{reinterpret_cast<uintptr_t>(kernels)});
  ASSERT_TRUE(event.ok()) << event.status();
  const Tensor written = *Tensor::FromBuffer(
      plain.dtype(), plain.shape(), Buffer::After(buffer, *std::move(event)));
  ASSERT_TRUE(client_->Put({{{"x", written}}}).ok());
  EXPECT_EQ(Read(store_.Get({"x"})->tensors[0].tensor),
            std::string(kLarge, 'b'));
}

// Tests a tensor that is freed and allocated again. The new tensor has another
// name, so no peer confuses the two.
TEST_F(CudaTransport, MemoryThatIsUsedAgainHasItsOwnBytes) {
  for (int i = 0; i < 30; ++i) {
    const std::string bytes(kLarge, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(client_->Put({{{"x", OnDevice(kFirst, bytes)}}}).ok());
    EXPECT_EQ(Read(store_.Get({"x"})->tensors[0].tensor), bytes) << i;
  }
}

// Tests a program that captures a graph. A driver call in any thread would
// invalidate the capture, and fail.
TEST_F(CudaTransport, GoesOnWhileTheProgramCapturesAGraph) {
  const device::abi::Stream training = Driver()->ProgramStream(0);
  const device::abi::Stream kernels = Driver()->ProgramStream(0);
  Driver()->BeginCapture(training);
  for (int i = 0; i < 10; ++i) {
    const Tensor plain = OnDevice(kFirst, std::string(kLarge + i, 'a'));
    auto event =
        Cuda()->Record(kFirst, Stream{reinterpret_cast<uintptr_t>(kernels)});
    ASSERT_TRUE(event.ok()) << event.status();
    const Tensor sent =
        *Tensor::FromBuffer(plain.dtype(), plain.shape(),
                            Buffer::After(plain.buffer(), *std::move(event)));
    ASSERT_TRUE(client_->Put({{{"x", sent}}}).ok());
    const auto got = client_->Get({"x"}, {}, DeviceTensors::kKeep);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(client_->Get({"x"}).ok());
  }
  Driver()->EndCapture(training);
}

// Tests a peer in another process, which may keep the memory open for some
// seconds.
TEST_F(CudaTransport, MemoryIsNotFreedWhileATransportKeepsIt) {
  std::shared_ptr<Buffer> buffer = *Cuda()->Allocate(kFirst, kLarge);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is one
  const auto* const data =
      reinterpret_cast<const uint8_t*>(buffer->device_address());
  auto shared = memory::DevicesOfProcess()->Share({data, kLarge});
  ASSERT_TRUE(shared.ok()) << shared.status();
  const auto at = reinterpret_cast<device::abi::Address>(data);
  buffer.reset();
  Driver()->Write(at, "still there");
  EXPECT_EQ(Driver()->Read(at, 11), "still there");
  const int freed = Driver()->CallsOf("MemFree");
  shared->memory.reset();
  EXPECT_GT(Driver()->CallsOf("MemFree"), freed);
}

// Tests lent memory that the program frees. The memory must soon be available
// again, so that the device does not run out of memory.
TEST_F(CudaTransport, MemoryThatIsLentAndDroppedIsFreedSoon) {
  const int before = Driver()->CallsOf("MemFree");
  constexpr int kTimes = 20;
  for (int i = 0; i < kTimes; ++i) {
    const std::string bytes(kLarge, static_cast<char>('a' + i));
    ASSERT_TRUE(client_->Put({{{"x", OnDevice(kFirst, bytes)}}}).ok());
  }
  // Waits until only the server's own copies are left. The server keeps one
  // copy.
  const absl::Time until = absl::Now() + absl::Seconds(30);
  while (Driver()->CallsOf("MemFree") < before + 2 * kTimes - 1 &&
         absl::Now() < until) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_GE(Driver()->CallsOf("MemFree"), before + 2 * kTimes - 1);
}

// Tests each driver call with a failure: the RPC may fail, and the next one
// succeeds.
TEST_F(CudaTransport, ADriverThatFailsCostsOneCall) {
  const std::string bytes(kLarge, 'x');
  const Tensor tensor = OnDevice(kFirst, bytes);
  ASSERT_TRUE(client_->Put({{{"x", tensor}}}).ok());
  int failed = 0;
  for (int call = 1; call <= 40; ++call) {
    Driver()->FailAfter(call, device::abi::kOperatingSystem);
    const auto put = client_->Put({{{"x", tensor}}});
    Driver()->FailNoMore();
    failed += put.ok() ? 0 : 1;
    ASSERT_TRUE(client_->Put({{{"x", tensor}}}).ok()) << call;
    ASSERT_EQ(Read(store_.Get({"x"})->tensors[0].tensor), bytes) << call;
  }
  EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace penstock::tensor
