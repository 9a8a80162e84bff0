// Tests the pool of registered memory: its growth, its limit, and its owners.

#include "transport/fabric/verbs/pool.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kSegment = 4 * kMiB;

class PoolTest : public testing::Test {
 protected:
  PoolTest() { Open(DeviceOptions()); }
  ~PoolTest() override {
    pool_.reset();
    domain_.reset();
    EXPECT_EQ(verbs_->leaks(), std::vector<std::string>());
  }

  void Open(DeviceOptions device, uint64_t budget = 16 * kMiB) {
    pool_.reset();
    domain_.reset();
    verbs_ = std::make_unique<FakeVerbs>();
    device.name = "mlx5_0";
    device.addresses = {"10.0.0.1"};
    domain_ = std::make_shared<const ProtectionDomain>(
        *AllocPd(verbs_.get(), verbs_->AddDevice(std::move(device))));
    pool_ = Pool::Create(verbs_.get(), domain_, IBV_ACCESS_LOCAL_WRITE, budget);
  }
  std::shared_ptr<PoolLease> Allocate(uint64_t size) {
    absl::StatusOr<std::shared_ptr<PoolLease>> lease = pool_->Allocate(size);
    EXPECT_TRUE(lease.ok()) << lease.status();
    return lease.ok() ? *lease : nullptr;
  }

  std::unique_ptr<FakeVerbs> verbs_;
  std::shared_ptr<const ProtectionDomain> domain_;
  std::shared_ptr<Pool> pool_;
};

TEST_F(PoolTest, NothingIsRegisteredBeforeItIsNeeded) {
  EXPECT_EQ(verbs_->counts().mrs, 0);
  EXPECT_EQ(pool_->registered_bytes(), 0u);
}

TEST_F(PoolTest, FirstSegmentIsAsItsUserWantsLaterOnesDouble) {
  const auto first = Allocate(kPage + 1);
  EXPECT_EQ(pool_->registered_bytes(), 2 * kPage);
  const auto second = Allocate(kPage);
  EXPECT_EQ(pool_->registered_bytes(), 4 * kPage);
  const auto large = Allocate(5 * kMiB);
  EXPECT_EQ(pool_->registered_bytes(), 4 * kPage + 5 * kMiB);
  const auto third = Allocate(2 * kPage);
  EXPECT_EQ(pool_->registered_bytes(), 4 * kPage + 5 * kMiB + kSegment)
      << "up to a limit";
  EXPECT_EQ(verbs_->counts().registered_bytes, pool_->registered_bytes());
  EXPECT_EQ(verbs_->counts().mrs, 4);
}

TEST_F(PoolTest, LeasesAreApartAlignedAndUnderTheirRegionsKey) {
  std::vector<std::shared_ptr<PoolLease>> leases;
  for (uint64_t size = 1; size < 20000; size = size * 2 + 1) {
    leases.push_back(Allocate(size));
    std::memset(leases.back()->data(), static_cast<int>(leases.size()), size);
  }
  for (size_t i = 0; i < leases.size(); ++i) {
    const PoolLease& lease = *leases[i];
    EXPECT_EQ(reinterpret_cast<uintptr_t>(lease.data()) % 64, 0u);
    const auto* begin = static_cast<const uint8_t*>(lease.region()->addr);
    EXPECT_GE(lease.data(), begin);
    EXPECT_LE(lease.data() + lease.size(), begin + lease.region()->length);
    EXPECT_EQ(lease.lkey(), lease.region()->lkey);
    EXPECT_EQ(lease.data()[0], i + 1);
    EXPECT_EQ(lease.data()[lease.size() - 1], i + 1) << "written over";
  }
}

TEST_F(PoolTest, GivenBackIsUsedAgain) {
  (void)Allocate(kPage);
  const uint64_t registered = pool_->registered_bytes();
  for (int i = 0; i < 1000; ++i) ASSERT_NE(Allocate(kPage), nullptr);
  EXPECT_EQ(pool_->registered_bytes(), registered);
}

TEST_F(PoolTest, BudgetIsTheLimitOfAllSegments) {
  Open(DeviceOptions(), /*budget=*/6 * kMiB);
  const auto first = Allocate(kPage);
  const auto second = Allocate(4 * kMiB);
  const absl::Status full = pool_->Allocate(4 * kMiB).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(absl::StrContains(full.message(), "6 MiB")) << full;
  const auto rest = Allocate(2 * kMiB - kPage);
  EXPECT_EQ(pool_->registered_bytes(), 6 * kMiB);
  EXPECT_FALSE(pool_->Allocate(1).ok());
  EXPECT_EQ(pool_->Allocate(~uint64_t{0}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(PoolTest, LockedMemoryThatIsExhaustedIsANormalAnswer) {
  DeviceOptions device;
  device.memlock_bytes = 2 * kPage;
  Open(device);
  auto lease = Allocate(2 * kPage);
  const absl::Status full = pool_->Allocate(1).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(absl::StrContains(full.message(), "ulimit -l")) << full;
  EXPECT_EQ(pool_->registered_bytes(), 2 * kPage) << "it was not counted";
  lease.reset();
  EXPECT_NE(Allocate(1), nullptr);
}

TEST_F(PoolTest, SegmentIsSmallerWhereLessMayBeLocked) {
  DeviceOptions device;
  device.memlock_bytes = 3 * kPage;
  Open(device);
  const auto first = Allocate(kPage);
  const auto second = Allocate(kPage + 1);
  EXPECT_EQ(pool_->registered_bytes(), 3 * kPage);
}

TEST_F(PoolTest, FailedRegistrationIsTriedAgainNextTime) {
  verbs_->FailNext(Call::kRegMr, EIO);
  EXPECT_FALSE(pool_->Allocate(1).ok());
  EXPECT_NE(Allocate(1), nullptr);
}

TEST_F(PoolTest, LeaseOutlivesThePoolsOwner) {
  auto lease = Allocate(kPage);
  pool_.reset();
  domain_.reset();
  EXPECT_EQ(verbs_->counts().mrs, 1) << "still registered";
  EXPECT_EQ(verbs_->counts().pds, 1);
  std::memset(lease->data(), 1, lease->size());
  std::thread([&] { lease.reset(); }).join();
  EXPECT_EQ(verbs_->counts().objects(), 0);
}

TEST_F(PoolTest, RegionIsFoundForMemoryInsideOneSegment) {
  const auto first = Allocate(kPage);
  const auto second = Allocate(kPage);
  EXPECT_NE(first->lkey(), second->lkey());
  EXPECT_EQ(pool_->FindRegion(first->data(), kPage), first->region());
  EXPECT_EQ(pool_->FindRegion(first->data() + 1, kPage - 1), first->region());
  EXPECT_EQ(pool_->FindRegion(second->data() + 100, 1), second->region());
  EXPECT_EQ(pool_->FindRegion(first->data() + 1, kPage), nullptr) << "end";
  EXPECT_EQ(pool_->FindRegion(first->data() - 1, 2), nullptr) << "begin";
  uint8_t elsewhere = 0;
  EXPECT_EQ(pool_->FindRegion(&elsewhere, 1), nullptr);
}

TEST_F(PoolTest, QuotaIsOfItsHolderAlone) {
  const auto small = std::make_shared<Quota>(kPage);
  auto lease = pool_->Allocate(kPage, small);
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_EQ(pool_->Allocate(1, small).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(pool_->Allocate(1, std::make_shared<Quota>(1)).ok());
  EXPECT_TRUE(pool_->Allocate(1).ok());
  *lease = nullptr;
  EXPECT_TRUE(pool_->Allocate(kPage, small).ok());
  EXPECT_FALSE(pool_->Allocate(~uint64_t{0}, small).ok());
}

TEST_F(PoolTest, QuotaIsGivenBackWhereThePoolHasNoRoom) {
  const auto quota = std::make_shared<Quota>(uint64_t{1} << 50);
  EXPECT_FALSE(pool_->Allocate(uint64_t{1} << 50, quota).ok());
  EXPECT_TRUE(quota->Take(uint64_t{1} << 50));
}

TEST_F(PoolTest, ThreadsMayTakeAndGiveBack) {
  std::vector<std::thread> threads;
  for (int i = 1; i <= 4; ++i) {
    threads.emplace_back([this, i] {
      for (int round = 0; round < 500; ++round) {
        const auto lease = Allocate(1000 * i);
        std::memset(lease->data(), i, lease->size());
        ASSERT_NE(pool_->FindRegion(lease->data(), lease->size()), nullptr);
        for (uint64_t at = 0; at < lease->size(); ++at) {
          ASSERT_EQ(lease->data()[at], i);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
