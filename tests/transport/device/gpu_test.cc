// Runs the tests of the simulated driver on a real device. Skips the tests on a
// machine without a device, unless PENSTOCK_TEST_GPU is "required" (tools/test
// --gpu).

#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "transport/device/copier.h"
#include "transport/device/device.h"
#include "transport/device/handles.h"
#include "transport/device/kernels/reduce_on_host.h"
#include "transport/device/library.h"
#include "transport/device/pinned_ranges.h"
#include "transport/device/reducer.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace device {
namespace {

bool IsRequired() {
  const char* const value = std::getenv("PENSTOCK_TEST_GPU");
  return value != nullptr && absl::string_view(value) == "required";
}

std::string RandomBytes(std::mt19937* random, size_t size) {
  std::string bytes(size, 0);
  for (char& byte : bytes) byte = static_cast<char>((*random)());
  return bytes;
}

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto api = OpenLibrary();
    if (!api.ok() && !IsRequired()) GTEST_SKIP() << api.status();
    ASSERT_TRUE(api.ok()) << api.status();
    auto opened = Device::Open(*api, 0);
    ASSERT_TRUE(opened.ok()) << opened.status();
    device_ = *std::move(opened);
    std::cout << device_->ToString() << ": " << device_->traits().name << "\n";
    pinned_ = PinnedRanges::Create(uint64_t{1} << 30);
    copier_ = std::make_unique<Copier>(device_.get(), pinned_.get(),
                                       Copier::Options());
    std::cout << "seed " << seed_ << "\n";
  }

  DeviceBlock OnDevice(const std::string& bytes) {
    auto block = AllocateOnDevice(device_.get(), bytes.size());
    EXPECT_TRUE(block.ok()) << block.status();
    EXPECT_TRUE(FromHost(block->get(), bytes).ok());
    return *std::move(block);
  }
  absl::Status FromHost(abi::Address to, const std::string& bytes) {
    return copier_->FromHost(
        {HostCopy{to, const_cast<char*>(bytes.data()), bytes.size()}}, {});
  }
  std::string ToHost(abi::Address from, size_t size,
                     absl::Span<const abi::Event> after = {}) {
    std::string bytes(size, 0);
    const absl::Status copied =
        copier_->ToHost({HostCopy{from, &bytes[0], size}}, after);
    EXPECT_TRUE(copied.ok()) << copied;
    return bytes;
  }

  const unsigned seed_ = std::random_device()();
  std::mt19937 random_{seed_};
  std::unique_ptr<Device> device_;
  std::shared_ptr<PinnedRanges> pinned_;
  std::unique_ptr<Copier> copier_;
};

TEST_F(GpuTest, BytesComeBackAsTheyWent) {
  for (size_t size : {1, 63, 4096, 1 << 20, (9 << 20) + 5}) {
    const std::string bytes = RandomBytes(&random_, size);
    const DeviceBlock block = OnDevice(bytes);
    EXPECT_TRUE(ToHost(block.get(), size) == bytes) << size;
  }
}

TEST_F(GpuTest, ThePoolIsPinnedAndCopiedInOnePiece) {
  constexpr size_t kBytes = 64 << 20;
  char* const pool = static_cast<char*>(std::aligned_alloc(4096, kBytes));
  {
    const auto promise = memory::StableMemory::Declare(pool, kBytes);
    ASSERT_TRUE(promise.ok());
    const std::string bytes = RandomBytes(&random_, kBytes);
    const DeviceBlock block = OnDevice(bytes);
    ASSERT_TRUE(
        copier_->ToHost({HostCopy{block.get(), pool, kBytes}}, {}).ok());
    EXPECT_TRUE(std::string(pool, kBytes) == bytes);
    EXPECT_EQ(pinned_->pinned_bytes(), kBytes);
  }
  EXPECT_EQ(pinned_->pinned_bytes(), 0);
  std::free(pool);
}

TEST_F(GpuTest, MoreThanThereIsIsResourceExhausted) {
  EXPECT_TRUE(absl::IsResourceExhausted(
      AllocateOnDevice(device_.get(), size_t{1} << 50).status()));
  EXPECT_TRUE(AllocateOnDevice(device_.get(), 8).ok());
}

TEST_F(GpuTest, AnAddressThatIsNoneIsAnErrorAndNothingIsLost) {
  char byte = 0;
  EXPECT_FALSE(copier_->ToHost({HostCopy{0x1000, &byte, 1}}, {}).ok());
  const DeviceBlock block = OnDevice("bytes");
  EXPECT_EQ(ToHost(block.get(), 5), "bytes");
}

TEST_F(GpuTest, KernelsHaveTheHostsBitsAndCopiesComeAfterThem) {
  auto reducer = Reducer::Create(device_.get());
  if (absl::IsUnimplemented(reducer.status())) GTEST_SKIP() << reducer.status();
  ASSERT_TRUE(reducer.ok()) << reducer.status();
  const Stream stream = *CreateStream(device_.get());
  for (int round = 0; round < 300; ++round) {
    kernels::Reduction reduction;
    reduction.operation = static_cast<kernels::Operation>(random_() % 3);
    reduction.type = static_cast<kernels::ElementType>(random_() % 3);
    reduction.count = random_() % (round % 10 == 0 ? 3000000 : 5000);
    reduction.scale = 0.37f;
    const bool is_add = reduction.operation == kernels::Operation::kScaledAdd;
    const size_t fan_in = is_add ? 1 : 1 + random_() % 8;
    const size_t shift = random_() % 4 * kernels::ElementBytes(reduction.type);
    const size_t bytes =
        shift + reduction.count * kernels::ElementBytes(reduction.type);
    std::vector<std::string> here;
    std::vector<DeviceBlock> there;
    std::vector<const void*> inputs_here;
    std::vector<const void*> inputs_there;
    for (size_t i = 0; i <= fan_in; ++i) {
      here.push_back(RandomBytes(&random_, bytes + 1));
      there.push_back(OnDevice(here.back()));
    }
    for (size_t i = 0; i <= fan_in; ++i) {
      inputs_here.push_back(here[i].data() + shift);
      inputs_there.push_back(
          reinterpret_cast<const void*>(there[i].get() + shift));
    }
    reduction.inputs = absl::MakeConstSpan(inputs_there).first(fan_in);
    reduction.output = const_cast<void*>(inputs_there.back());
    ASSERT_TRUE((*reducer)->Queue(reduction, stream.get()).ok());
    const Event done = *CreateEvent(device_.get());
    {
      const auto entered = device_->Enter();
      ASSERT_EQ(device_->api()->EventRecord(done.get(), stream.get()),
                abi::kSuccess);
    }
    const std::string got = ToHost(there.back().get(), bytes + 1, {done.get()});
    reduction.inputs = absl::MakeConstSpan(inputs_here).first(fan_in);
    reduction.output = const_cast<void*>(inputs_here.back());
    ASSERT_TRUE(kernels::ReduceOnHost(reduction).ok());
    ASSERT_TRUE(got == here.back())
        << "operation " << static_cast<int>(reduction.operation) << ", type "
        << static_cast<int>(reduction.type) << ", " << reduction.count
        << " elements of " << fan_in << " arrays";
  }
}

}  // namespace
}  // namespace device
}  // namespace penstock
