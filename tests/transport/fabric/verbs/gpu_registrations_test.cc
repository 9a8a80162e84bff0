// Tests regions of GPU memory: which are reused, which are kept, and when they
// end.

#include "transport/fabric/verbs/gpu_registrations.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/base/steady_time.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

using memory::Bytes;

constexpr size_t kGpuPage = 64 * 1024;
constexpr size_t kUnnamed = 256 * 1024;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;

class GpuRegistrationsTest : public testing::Test {
 protected:
  GpuRegistrationsTest() { Keep(64 * kGpuPage); }
  ~GpuRegistrationsTest() override {
    all_.reset();
    domain_.reset();
    EXPECT_EQ(verbs_.leaks(), std::vector<std::string>());
  }

  void Keep(uint64_t bytes, size_t regions = 256) {
    GpuKeeping keeping;
    keeping.bytes = bytes;
    keeping.regions = regions;
    keeping_ = keeping;
    all_ = GpuRegistrations::Create(domain_, direct_, kAccess, keeping);
  }
  Bytes Allocate(size_t pages) {
    return gpu_.Put(std::string(pages * kGpuPage, 'x'));
  }
  SharedRegistration Get(const Bytes& bytes) {
    absl::StatusOr<SharedRegistration> got = TryGet(bytes);
    EXPECT_TRUE(got.ok()) << got.status();
    if (!got.ok()) return nullptr;
    const ibv_mr& region = *(*got)->region();
    const auto* const begin = static_cast<const uint8_t*>(region.addr);
    EXPECT_LE(begin, bytes.data);
    EXPECT_GE(begin + region.length, bytes.data + bytes.size);
    return *got;
  }
  absl::StatusOr<SharedRegistration> TryGet(const Bytes& bytes) {
    auto* const data = const_cast<uint8_t*>(bytes.data);
    return all_->GetToReceive({data, bytes.size, &gpu_}, kUnnamed);
  }
  // Registers a part of the first allocation, so that the working way is known.
  void FindWay() { Get(Allocate(1)); }
  void Forget() { all_->OnTick(base::SteadyNow() + keeping_.idle); }
  int regions() { return verbs_.counts().mrs; }

  FakeVerbs verbs_;
  memory::FakeDeviceAccess gpu_;
  GpuKeeping keeping_;
  std::shared_ptr<const ProtectionDomain> domain_ =
      std::make_shared<const ProtectionDomain>(
          *AllocPd(&verbs_, verbs_.AddDevice({"mlx5_0", {"10.0.0.1"}})));
  const std::shared_ptr<GpuDirect> direct_ =
      std::make_shared<GpuDirect>(&verbs_, 1);
  std::shared_ptr<GpuRegistrations> all_;
};

TEST_F(GpuRegistrationsTest, RegionOfTheAllocationServesAllItsParts) {
  FindWay();
  const int before = regions();
  const Bytes bytes = Allocate(8);
  const SharedRegistration first = Get(bytes.Part(kGpuPage, kGpuPage));
  EXPECT_EQ(Get(bytes), first);
  EXPECT_EQ(Get(bytes.Part(100, 7 * kGpuPage)), first);
  EXPECT_EQ(regions(), before + 1);
  EXPECT_EQ(all_->counters().hits, 2u);
}

// Tests that a region of a large allocation covers only the wanted bytes, in
// whole pages of the GPU.
TEST_F(GpuRegistrationsTest, OfALargeAllocationPartsAreRegistered) {
  FindWay();
  const Bytes bytes = Allocate(33);  // above half of the budget
  const SharedRegistration part = Get(bytes.Part(3 * kGpuPage + 5, kGpuPage));
  EXPECT_EQ(part->region()->addr, bytes.data + 3 * kGpuPage);
  EXPECT_EQ(part->region()->length, 2 * kGpuPage);
  EXPECT_EQ(Get(bytes.Part(4 * kGpuPage, kGpuPage)), part);
  EXPECT_NE(Get(bytes.Part(5 * kGpuPage, kGpuPage)), part);
  const SharedRegistration last = Get(bytes.Part(32 * kGpuPage, kGpuPage));
  EXPECT_EQ(last->region()->length, kGpuPage);
}

TEST_F(GpuRegistrationsTest, WhatNobodyUsesEndsAfterAWhile) {
  const int before = regions();
  SharedRegistration used = Get(Allocate(1));
  Get(Allocate(1));
  EXPECT_EQ(regions(), before + 2);
  all_->OnTick(base::SteadyNow());
  EXPECT_EQ(regions(), before + 2);
  used.reset();
  Forget();
  EXPECT_EQ(regions(), before);
  EXPECT_EQ(all_->counters().kept_bytes, 0u);
}

// Tests idle regions next to a region that has been in use for a long time. The
// idle regions must end.
TEST_F(GpuRegistrationsTest, WhatIsIdleEndsThoughAnOlderOneIsUsed) {
  const Bytes bytes[] = {Allocate(1), Allocate(1), Allocate(1)};
  const SharedRegistration used = Get(bytes[0]);
  const int before = regions();
  Get(bytes[1]);
  Get(bytes[2]);
  EXPECT_EQ(regions(), before + 2);
  Forget();
  EXPECT_EQ(regions(), before);
}

TEST_F(GpuRegistrationsTest, WhatIsUsedIsNotEnded) {
  const Bytes bytes = Allocate(1);
  SharedRegistration used = Get(bytes);
  Forget();
  EXPECT_EQ(Get(bytes), used);
}

TEST_F(GpuRegistrationsTest, KeepsNoMoreBytesThanItMay) {
  Keep(4 * kGpuPage);
  for (int i = 0; i < 20; ++i) {
    Get(Allocate(1 + i % 4));
    EXPECT_LE(all_->counters().kept_bytes, 4 * kGpuPage);
    EXPECT_LE(verbs_.counts().registered_bytes, 4 * kGpuPage);
  }
  const SharedRegistration large = Get(Allocate(5));
  EXPECT_LE(all_->counters().kept_bytes, 4 * kGpuPage);
}

TEST_F(GpuRegistrationsTest, KeepsNoMoreRegionsThanItMay) {
  Keep(64 * kGpuPage, 3);
  std::vector<Bytes> allocated;
  allocated.reserve(5);
  for (int i = 0; i < 5; ++i) allocated.push_back(Allocate(1));
  std::vector<SharedRegistration> used;
  used.reserve(3);
  for (int i = 0; i < 3; ++i) used.push_back(Get(allocated[i]));
  SharedRegistration more = Get(allocated[3]);
  EXPECT_EQ(regions(), 4);
  more.reset();
  EXPECT_EQ(regions(), 3) << "there was no room to keep it";
  used.clear();
  Get(allocated[4]);
  EXPECT_EQ(regions(), 3);
}

TEST_F(GpuRegistrationsTest, NothingIsKeptWhereNothingMayBe) {
  Keep(0);
  Get(Allocate(1));
  EXPECT_EQ(regions(), 0);
}

TEST_F(GpuRegistrationsTest, RegionThatIsOvertakenEndsWithItsLastUser) {
  Bytes bytes = Allocate(2);
  const uint8_t* const address = bytes.data;
  SharedRegistration old = Get(bytes);
  bytes = Bytes();
  bytes = Allocate(2);
  if (bytes.data != address) GTEST_SKIP() << "the memory lies elsewhere";
  const SharedRegistration now = Get(bytes);
  EXPECT_NE(now, old);
  EXPECT_EQ(regions(), 2);
  old.reset();
  EXPECT_EQ(regions(), 1);
  EXPECT_EQ(Get(bytes), now);
}

// Tests a GPU whose window to the bus is full of kept regions. Kept regions
// must make room.
TEST_F(GpuRegistrationsTest, WhatIsKeptMakesRoom) {
  FindWay();
  Get(Allocate(1));
  const Bytes bytes = Allocate(1);
  verbs_.FailNext(Call::kRegDmabufMr, ENOMEM);
  EXPECT_NE(Get(bytes), nullptr);
  EXPECT_EQ(regions(), 1);
}

TEST_F(GpuRegistrationsTest, WhatCannotBeRegisteredSaysWhy) {
  FindWay();
  verbs_.FailNext(Call::kRegDmabufMr, EINVAL);     // the whole allocation's
  verbs_.FailNext(Call::kRegDmabufMr, EINVAL, 1);  // the part's
  const auto got = TryGet(Allocate(1));
  EXPECT_EQ(got.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(got.status().message().substr(0, 26), "register a dmabuf on mlx5_");
}

TEST_F(GpuRegistrationsTest, MemoryOfNoAllocationIsRefused) {
  Bytes bytes = Allocate(8);
  bytes.owner.reset();
  EXPECT_FALSE(TryGet(bytes).ok());
  EXPECT_EQ(regions(), 0);
}

TEST_F(GpuRegistrationsTest, OnlyWhatIsPreparedIsFound) {
  const Bytes bytes = Allocate(4);
  auto* const data = const_cast<uint8_t*>(bytes.data);
  const auto is_prepared = [&](size_t at, size_t size) {
    return all_->FindPrepared(data + at, size).region != nullptr;
  };
  EXPECT_FALSE(is_prepared(0, 1));
  // Prepares one range twice, as two messages at the same time do.
  auto first = all_->Prepare({data + 100, 2 * kGpuPage, &gpu_}, kUnnamed);
  auto second = all_->Prepare({data + 100, 2 * kGpuPage, &gpu_}, kUnnamed);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(is_prepared(100, 2 * kGpuPage));
  EXPECT_FALSE(is_prepared(99, 2));
  EXPECT_FALSE(is_prepared(100, 2 * kGpuPage + 1));
  EXPECT_EQ(all_->FindPrepared(data + 100, 1).gpu, &gpu_);
  first.reset();
  EXPECT_TRUE(is_prepared(100, 1));
  second.reset();
  EXPECT_FALSE(is_prepared(100, 1));
}

TEST_F(GpuRegistrationsTest, ManyThreadsAtOnce) {
  Keep(4 * kGpuPage);
  std::vector<Bytes> shared;
  shared.reserve(4);
  for (int i = 0; i < 4; ++i) shared.push_back(Allocate(1 + i));
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 300; ++i) {
        const Bytes bytes = i % 4 == 0 ? Allocate(1) : shared[random() % 4];
        if (random() % 2 == 0) {
          Get(bytes);
        } else {
          auto* const data = const_cast<uint8_t*>(bytes.data);
          const auto prepared =
              all_->Prepare({data, bytes.size, &gpu_}, kUnnamed);
          EXPECT_NE(all_->FindPrepared(data, 1).region, nullptr);
        }
        if (i % 16 == 0) Forget();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Forget();
  EXPECT_EQ(regions(), 0);
}

// Allocates, frees, requests and forgets memory at random. A region must always
// lead to the bytes of its caller, and no more regions than allowed may be
// kept.
TEST_F(GpuRegistrationsTest, RandomUse) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  constexpr uint64_t kBudget = 16 * kGpuPage;
  Keep(kBudget, 8);
  struct Use {
    Bytes bytes;
    SharedRegistration region;
  };
  std::vector<Bytes> allocated;
  std::vector<Use> uses;
  for (int i = 0; i < 3000; ++i) {
    const size_t choice = random() % 10;
    if (choice < 3 || allocated.empty()) {
      // Marks each allocation, to tell it from the others.
      const char mark = static_cast<char>(i);
      allocated.push_back(
          gpu_.Put(std::string((1 + random() % 12) * kGpuPage, mark)));
    } else if (choice < 5) {
      allocated.erase(allocated.begin() + random() % allocated.size());
    } else if (choice < 8) {
      const Bytes& of = allocated[random() % allocated.size()];
      const size_t at = random() % of.size;
      Use use;
      use.bytes = of.Part(at, 1 + random() % (of.size - at));
      use.region = Get(use.bytes);
      ASSERT_NE(use.region, nullptr);
      uses.push_back(std::move(use));
    } else if (choice == 8 && !uses.empty()) {
      uses.erase(uses.begin() + random() % uses.size());
    } else if (random() % 20 == 0) {
      Forget();
    }
    if (allocated.size() > 12) allocated.erase(allocated.begin());
    if (uses.size() > 12) uses.erase(uses.begin());
    ASSERT_LE(all_->counters().kept_bytes, kBudget);
    for (const Use& use : uses) {
      uint8_t expected = 0;
      ASSERT_TRUE(gpu_.CopyToHost(use.bytes.span().first(1), &expected).ok());
      const auto* const found = static_cast<const uint8_t*>(
          verbs_.Find(*use.region->region(), use.bytes.data));
      ASSERT_NE(found, nullptr);
      ASSERT_EQ(*found, expected) << "of another allocation, step " << i;
    }
  }
  uses.clear();
  Forget();
  EXPECT_EQ(regions(), 0);
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
