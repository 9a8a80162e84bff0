#include "transport/device/copier.h"

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/transport/device/fake_driver.h"
#include "transport/device/handles.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace device {
namespace {

using testing::IsEmpty;

constexpr uint64_t kBudget = 64 << 20;

std::string RandomBytes(std::mt19937* random, size_t size) {
  std::string bytes(size, 0);
  for (char& byte : bytes) byte = static_cast<char>((*random)());
  return bytes;
}

// Memory of the host that was declared stable, in whole pages.
class StableBlock {
 public:
  explicit StableBlock(size_t size)
      : data_(static_cast<char*>(std::aligned_alloc(4096, size))),
        promise_(*memory::StableMemory::Declare(data_, size)) {}
  ~StableBlock() {
    promise_.reset();
    std::free(data_);
  }
  StableBlock(const StableBlock&) = delete;
  StableBlock& operator=(const StableBlock&) = delete;
  char* data() { return data_; }

 private:
  char* const data_;
  std::unique_ptr<memory::StableMemory> promise_;
};

class CopierTest : public testing::Test {
 protected:
  CopierTest() { Open({}); }
  ~CopierTest() override {
    copier_.reset();
    pinned_.reset();
    blocks_.clear();
    device_.reset();
    other_.reset();
    EXPECT_EQ(driver_.Remains(), "");
    EXPECT_THAT(driver_.violations(), IsEmpty());
  }

  void Open(const Copier::Options& options) {
    copier_.reset();
    if (device_ == nullptr) {
      device_ = *Device::Open(&driver_, 0);
      other_ = *Device::Open(&driver_, 1);
      pinned_ = PinnedRanges::Create(kBudget);
    }
    copier_ = std::make_unique<Copier>(device_.get(), pinned_.get(), options);
  }

  abi::Address OnDevice(size_t bytes, Device* device = nullptr) {
    auto block =
        AllocateOnDevice(device == nullptr ? device_.get() : device, bytes);
    EXPECT_TRUE(block.ok()) << block.status();
    blocks_.push_back(*std::move(block));
    return blocks_.back().get();
  }
  abi::Address OnDevice(const std::string& bytes) {
    const abi::Address at = OnDevice(bytes.size());
    driver_.Write(at, bytes);
    return at;
  }
  // Returns an event that completes when all work in `stream` has run.
  Event EventAfter(abi::Stream stream) {
    Event event = *CreateEvent(device_.get());
    auto entered = device_->Enter();
    EXPECT_EQ(driver_.EventRecord(event.get(), stream), abi::kSuccess);
    return event;
  }

  FakeDriver driver_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Device> other_;
  std::shared_ptr<PinnedRanges> pinned_;
  std::unique_ptr<Copier> copier_;
  std::vector<DeviceBlock> blocks_;
};

TEST_F(CopierTest, ALargeCopyGoesThroughItsSlotsAndComesOutWhole) {
  std::mt19937 random(1);
  const std::string bytes = RandomBytes(&random, 9 * 1024 * 1024 + 17);
  const abi::Address at = OnDevice(bytes);
  std::string host(bytes.size(), 0);
  const HostCopy copy{at, &host[0], host.size()};
  ASSERT_TRUE(copier_->ToHost({copy}, {}).ok());
  EXPECT_TRUE(host == bytes);
  EXPECT_EQ(driver_.CallsOf("MemcpyDtoHAsync"), 9) << "loads of 2 MiB, or less";

  driver_.Write(at, std::string(bytes.size(), 'x'));
  ASSERT_TRUE(copier_->FromHost({copy}, {}).ok());
  EXPECT_TRUE(driver_.Read(at, bytes.size()) == bytes);
}

TEST_F(CopierTest, ThePoolIsCopiedInOnePieceAndPinnedOnce) {
  StableBlock pool(8 << 20);
  std::mt19937 random(2);
  const std::string bytes = RandomBytes(&random, 5 << 20);
  const abi::Address at = OnDevice(bytes);
  for (int i = 0; i < 3; ++i) {
    const HostCopy copy{at, pool.data() + 1000 * i, bytes.size()};
    ASSERT_TRUE(copier_->ToHost({copy}, {}).ok());
    EXPECT_TRUE(std::string(copy.host, bytes.size()) == bytes);
  }
  EXPECT_EQ(driver_.CallsOf("MemcpyDtoHAsync"), 3);
  EXPECT_EQ(driver_.CallsOf("MemHostRegister"), 1);
  EXPECT_EQ(pinned_->pinned_bytes(), 8 << 20);
}

TEST_F(CopierTest, APinEndsWithThePromise) {
  {
    StableBlock pool(1 << 20);
    const HostCopy copy{OnDevice(1 << 20), pool.data(), 1 << 20};
    ASSERT_TRUE(copier_->ToHost({copy}, {}).ok());
    EXPECT_EQ(driver_.CallsOf("MemHostRegister"), 1);
  }
  EXPECT_EQ(driver_.CallsOf("MemHostUnregister"), 1);
  EXPECT_EQ(pinned_->pinned_bytes(), 0);
}

TEST_F(CopierTest, NoMoreIsPinnedThanTheBudgetAllows) {
  pinned_ = PinnedRanges::Create(1 << 20);
  Open({});
  StableBlock fits(1 << 20);
  StableBlock too_much(1 << 20);
  std::mt19937 random(3);
  const std::string bytes = RandomBytes(&random, 1 << 20);
  for (StableBlock* pool : {&fits, &too_much, &too_much}) {
    const HostCopy copy{OnDevice(bytes), pool->data(), bytes.size()};
    ASSERT_TRUE(copier_->ToHost({copy}, {}).ok());
    EXPECT_TRUE(std::string(pool->data(), bytes.size()) == bytes);
  }
  EXPECT_EQ(driver_.CallsOf("MemHostRegister"), 1);
}

TEST_F(CopierTest, WhereNothingCanBePinnedTheDriverCopies) {
  driver_.RefusePinning(true);
  StableBlock pool(1 << 20);
  std::mt19937 random(4);
  const std::string bytes = RandomBytes(&random, 1 << 20);
  const abi::Address at = OnDevice(bytes);
  std::string heap(bytes.size(), 0);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(copier_
                    ->ToHost({HostCopy{at, &heap[0], heap.size()},
                              HostCopy{at, pool.data(), bytes.size()}},
                             {})
                    .ok());
    EXPECT_TRUE(heap == bytes);
    EXPECT_TRUE(std::string(pool.data(), bytes.size()) == bytes);
  }
  // Expects one attempt to pin the range. A failed attempt is not repeated,
  // unlike the attempt to pin a lane's slots.
  EXPECT_EQ(driver_.CallsOf("MemHostRegister"), 1);
  driver_.RefusePinning(false);
  const int allocated = driver_.CallsOf("MemHostAlloc");
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(
        copier_->ToHost({HostCopy{at, &heap[0], heap.size()}}, {}).ok());
  }
  EXPECT_EQ(driver_.CallsOf("MemHostAlloc"), allocated + 1);
}

TEST_F(CopierTest, ACopyWaitsForTheStreamsThatItComesAfter) {
  const abi::Address at = OnDevice(std::string(100, 'a'));
  const abi::Stream stream = driver_.ProgramStream(0);
  std::string host(100, 0);
  const HostCopy copy{at, &host[0], host.size()};

  driver_.QueueFill(stream, at, 'b', 100);
  ASSERT_TRUE(copier_->ToHost({copy}, {}).ok());
  EXPECT_EQ(host, std::string(100, 'a'));
  const Event written = EventAfter(stream);
  ASSERT_TRUE(copier_->ToHost({copy}, {written.get()}).ok());
  EXPECT_EQ(host, std::string(100, 'b'));

  // Queues a fill with 'c'. The copy must wait for the fill, which would
  // otherwise overwrite the copied bytes.
  driver_.QueueFill(stream, at, 'c', 100);
  const Event read = EventAfter(stream);
  ASSERT_TRUE(copier_->FromHost({copy}, {read.get()}).ok());
  EXPECT_EQ(driver_.Read(at, 100), std::string(100, 'b'));
}

TEST_F(CopierTest, OtherStreamsOfTheDeviceGoOnByThemselves) {
  const abi::Address at = OnDevice(std::string(100, 'a'));
  const abi::Address busy = OnDevice(std::string(100, 'a'));
  const abi::Stream stream = driver_.ProgramStream(0);
  driver_.QueueFill(stream, busy, 'b', 100);
  std::string host(100, 0);
  ASSERT_TRUE(copier_->ToHost({HostCopy{at, &host[0], host.size()}}, {}).ok());
  EXPECT_EQ(driver_.Read(busy, 100), std::string(100, 'a')) << "it has waited";
}

TEST_F(CopierTest, CopiesWithinADeviceAndToAnother) {
  std::mt19937 random(5);
  const std::string bytes = RandomBytes(&random, 3 << 20);
  const abi::Address from = OnDevice(bytes);
  const abi::Address near = OnDevice(bytes.size());
  const abi::Address far = OnDevice(bytes.size(), other_.get());
  ASSERT_TRUE(
      copier_->OnDevice(device_.get(), {{from, near, bytes.size()}}, {}).ok());
  ASSERT_TRUE(
      copier_->OnDevice(other_.get(), {{from, far, bytes.size()}}, {}).ok());
  EXPECT_TRUE(driver_.Read(near, bytes.size()) == bytes);
  EXPECT_TRUE(driver_.Read(far, bytes.size()) == bytes);
  EXPECT_EQ(driver_.CallsOf("MemcpyPeerAsync"), 1);
}

TEST_F(CopierTest, MemoryThatIsNotTheDevicesIsRefused) {
  std::string host(100, 0);
  const HostCopy copy{0x1234, &host[0], host.size()};
  EXPECT_TRUE(absl::IsInvalidArgument(copier_->ToHost({copy}, {})));
  EXPECT_TRUE(absl::IsInvalidArgument(copier_->FromHost({copy}, {})));
}

TEST_F(CopierTest, RandomBatchesBothWays) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  StableBlock pool(4 << 20);
  for (int round = 0; round < 60; ++round) {
    Copier::Options options;
    options.slots = 1 + random() % 4;
    options.slot_bytes = kSlotAlignment * (1 + random() % 4096);
    Open(options);
    std::string heap(2 << 20, 0);
    std::vector<HostCopy> copies;
    std::vector<std::string> wanted;
    size_t in_pool = 0;
    size_t in_heap = 0;
    for (int i = random() % 12; i > 0; --i) {
      const bool pooled = random() % 3 == 0;
      const size_t size = random() % (random() % 2 == 0 ? 300 : 170000);
      size_t* const used = pooled ? &in_pool : &in_heap;
      char* const host = (pooled ? pool.data() : &heap[0]) + *used;
      *used += size;
      wanted.push_back(RandomBytes(&random, size));
      copies.push_back({OnDevice(size + 1), host, size});
      driver_.Write(copies.back().device, wanted.back());
    }
    ASSERT_TRUE(copier_->ToHost(copies, {}).ok());
    for (size_t i = 0; i < copies.size(); ++i) {
      ASSERT_TRUE(std::string(copies[i].host, copies[i].bytes) == wanted[i]);
      driver_.Write(copies[i].device, std::string(copies[i].bytes + 1, '#'));
    }
    ASSERT_TRUE(copier_->FromHost(copies, {}).ok());
    for (size_t i = 0; i < copies.size(); ++i) {
      ASSERT_TRUE(driver_.Read(copies[i].device, copies[i].bytes + 1) ==
                  wanted[i] + "#");
    }
    blocks_.clear();
  }
}

TEST_F(CopierTest, MoreThreadsThanLanesAllGetThrough) {
  Copier::Options options;
  options.lanes = 2;
  options.slot_bytes = 4096;
  Open(options);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    const std::string bytes(100000, static_cast<char>('a' + t));
    const abi::Address at = OnDevice(bytes);
    threads.emplace_back([this, at, bytes] {
      for (int i = 0; i < 20; ++i) {
        std::string host(bytes.size(), 0);
        ASSERT_TRUE(
            copier_->ToHost({HostCopy{at, &host[0], host.size()}}, {}).ok());
        ASSERT_TRUE(host == bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(driver_.CallsOf("MemHostAlloc"), 2);
}

// Makes each call fail in turn. After each failure, the caller must get back
// the memory that the device has borrowed, and the next copy must work.
TEST_F(CopierTest, AfterAnyFailureNothingIsLeakedAndTheNextCopyWorks) {
  std::mt19937 random(6);
  const std::string bytes = RandomBytes(&random, 20000);
  const abi::Address at = OnDevice(bytes);
  const abi::Address to = OnDevice(bytes.size());
  const Event event = EventAfter(driver_.ProgramStream(0));
  Copier::Options options;
  options.slots = 2;
  options.slot_bytes = 4096;
  for (int kind = 0; kind < 3; ++kind) {
    bool failed = true;
    for (int n = 0; failed; ++n) {
      ASSERT_LT(n, 200);
      Open(options);
      std::string host(bytes.size(), 0);
      const HostCopy copy{at, &host[0], host.size()};
      const auto run = [&] {
        if (kind == 0) return copier_->ToHost({copy}, {event.get()});
        if (kind == 1) return copier_->FromHost({copy}, {event.get()});
        return copier_->OnDevice(device_.get(), {{at, to, bytes.size()}},
                                 {event.get()});
      };
      const int before = driver_.calls();
      driver_.FailAfter(n, abi::kOutOfMemory);
      const absl::Status status = run();
      failed = driver_.calls() > before + n;
      if (status.ok() && kind == 0) {
        EXPECT_TRUE(host == bytes);
      }
      if (!status.ok()) {
        EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
        driver_.Write(at, bytes);
      }
      driver_.FailNoMore();
      host = bytes;
      EXPECT_TRUE(run().ok());
      EXPECT_TRUE(driver_.Read(at, bytes.size()) == bytes);
    }
  }
}

TEST_F(CopierTest, ALostDeviceFailsAtOnceAndLeaksNothing) {
  std::string host(5 << 20, 0);
  const HostCopy copy{OnDevice(host.size()), &host[0], host.size()};
  ASSERT_TRUE(copier_->ToHost({copy}, {}).ok());
  driver_.Lose(abi::kIllegalAddress);
  for (int i = 0; i < 3; ++i) {
    const absl::Status lost = copier_->ToHost({copy}, {});
    EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
    EXPECT_THAT(lost.message(), testing::HasSubstr("restart"));
  }
}

}  // namespace
}  // namespace device
}  // namespace penstock
