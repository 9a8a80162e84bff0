// Tests the cache's regions: which are reused, which are kept, and when they
// end.

#include "transport/fabric/verbs/registration_cache.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

using memory::Bytes;
using memory::StableMemory;

constexpr int kAccess = IBV_ACCESS_MW_BIND;
constexpr size_t kPages = 64;

class RegistrationCacheTest : public testing::Test {
 protected:
  RegistrationCacheTest() { Budget(16); }
  ~RegistrationCacheTest() override {
    cache_.reset();
    domain_.reset();
    EXPECT_EQ(verbs_.leaks(), std::vector<std::string>());
    munmap(memory_, kPages * page_);
  }

  void Budget(size_t pages) {
    cache_ = RegistrationCache::Create(&verbs_, domain_, pages * page_);
  }
  uint8_t* At(size_t page) { return memory_ + page * page_; }
  Bytes Pages(size_t first, size_t count = 1,
              std::shared_ptr<const void> owner = nullptr) {
    return Bytes{At(first), count * page_, std::move(owner)};
  }
  std::unique_ptr<StableMemory> Declare(size_t first, size_t count) {
    return StableMemory::Declare(At(first), count * page_).value();
  }
  SharedRegistration Get(const Bytes& bytes, int access = kAccess) {
    absl::StatusOr<SharedRegistration> got = cache_->Get(bytes, access);
    EXPECT_TRUE(got.ok()) << got.status();
    return got.ok() ? *got : nullptr;
  }
  bool Has(const Bytes& bytes) {
    return cache_->Find(bytes, kAccess) != nullptr;
  }
  int regions() { return verbs_.counts().mrs; }

  const size_t page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  uint8_t* const memory_ =
      static_cast<uint8_t*>(mmap(nullptr, kPages* page_, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  FakeVerbs verbs_;
  std::shared_ptr<const ProtectionDomain> domain_ =
      std::make_shared<const ProtectionDomain>(
          *AllocPd(&verbs_, verbs_.AddDevice({"mlx5_0", {"10.0.0.1"}})));
  std::shared_ptr<RegistrationCache> cache_;
};

TEST_F(RegistrationCacheTest, DeclaredMemoryIsRegisteredOnceAndAsAWhole) {
  const auto declared = Declare(0, 8);
  const auto first = Get(Pages(2));
  EXPECT_EQ(first->region()->addr, At(0));
  EXPECT_EQ(first->region()->length, 8 * page_);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(Get(Pages(i)), first);
  const RegistrationCounters counters = cache_->counters();
  EXPECT_EQ(counters.misses, 1u);
  EXPECT_EQ(counters.hits, 8u);
  EXPECT_EQ(counters.kept_bytes, 8 * page_);
}

TEST_F(RegistrationCacheTest, OfALongRangeThePartIsRegistered) {
  const auto declared = Declare(0, 9);  // more than half of the budget
  const auto part = Get(Bytes{At(2) + 100, page_, nullptr});
  EXPECT_EQ(part->region()->addr, At(2));
  EXPECT_EQ(part->region()->length, 2 * page_) << "whole pages";
  EXPECT_TRUE(Has(Pages(2, 2)));
  EXPECT_FALSE(Has(Pages(1)));
  EXPECT_FALSE(Has(Pages(3, 2)));
}

TEST_F(RegistrationCacheTest, DeclaredMemoryStaysRegisteredWhenUnused) {
  const auto declared = Declare(0, 1);
  Get(Pages(0));
  EXPECT_EQ(regions(), 1);
  EXPECT_TRUE(Has(Pages(0)));
}

TEST_F(RegistrationCacheTest, OtherMemoryIsRegisteredForItsUsersOnly) {
  auto owner = std::make_shared<int>();
  auto first = Get(Pages(0, 4, owner));
  auto second = Get(Pages(1, 1, owner));
  EXPECT_EQ(first, second);
  first.reset();
  EXPECT_TRUE(Has(Pages(0, 4)));
  second.reset();
  EXPECT_FALSE(Has(Pages(0, 4)));
  EXPECT_EQ(regions(), 0);
  EXPECT_EQ(cache_->counters().kept_bytes, 0u);
}

// Tests that a region holds the memory that it covers. The first user releases
// its bytes, while the second user uses only some of them. The rest must not be
// freed yet, because a third user could get the region.
TEST_F(RegistrationCacheTest, RegionHoldsTheMemoryThatItCovers) {
  auto owner = std::make_shared<int>();
  const std::weak_ptr<int> watched = owner;
  auto first = Get(Pages(0, 4, owner));
  auto second = Get(Pages(0, 1, owner));
  owner.reset();
  first.reset();
  EXPECT_FALSE(watched.expired());
  EXPECT_TRUE(Has(Pages(3)));
  second.reset();
  EXPECT_TRUE(watched.expired());
  EXPECT_FALSE(Has(Pages(3)));
}

// Tests an owner that waits for its memory while other users keep sending parts
// of the memory.
TEST_F(RegistrationCacheTest, NewUsersDoNotHoldTheFirstOnesMemoryForEver) {
  auto owner = std::make_shared<int>();
  const std::weak_ptr<int> watched = owner;
  const auto others = std::make_shared<int>();
  auto used = Get(Pages(0, 1, std::move(owner)));
  int users = 1;
  for (; !watched.expired(); ++users) {
    ASSERT_LT(users, 1000);
    const auto next = Get(Pages(0, 1, others));
    used = next;  // the previous registration has ended
  }
  EXPECT_GT(users, 16) << "of a message to many";
  EXPECT_EQ(regions(), 1);
}

TEST_F(RegistrationCacheTest, OwnerIsLetGoAfterTheRegion) {
  std::shared_ptr<const void> owner(memory_,
                                    [this](void*) { EXPECT_EQ(regions(), 0); });
  auto got = Get(Pages(0, 1, std::move(owner)));
  EXPECT_EQ(regions(), 1);
  got.reset();
}

TEST_F(RegistrationCacheTest, MemoryThatNobodyVouchesForIsNotShared) {
  const auto first = Get(Pages(0));
  EXPECT_FALSE(Has(Pages(0)));
  EXPECT_NE(Get(Pages(0)), first);
}

TEST_F(RegistrationCacheTest, PromiseThatIsOverEndsWhatIsUnused) {
  auto declared = Declare(0, 4);
  Get(Pages(0));
  declared.reset();
  EXPECT_EQ(regions(), 0);
  EXPECT_EQ(cache_->counters().kept_bytes, 0u);
}

TEST_F(RegistrationCacheTest, PromiseThatIsOverHidesWhatIsInUse) {
  auto declared = Declare(0, 4);
  auto used = Get(Pages(0));
  declared.reset();
  EXPECT_EQ(regions(), 1) << "its user goes on";
  EXPECT_FALSE(Has(Pages(0)));
  declared = Declare(0, 4);
  EXPECT_FALSE(Has(Pages(0))) << "the addresses may be others by now";
  EXPECT_NE(Get(Pages(0)), used);
  used.reset();
  EXPECT_EQ(regions(), 1);
}

TEST_F(RegistrationCacheTest, LeastRecentlyUsedGoesFirst) {
  Budget(8);
  std::vector<std::unique_ptr<StableMemory>> declared;
  for (size_t i = 0; i < 4; ++i) declared.push_back(Declare(i * 4, 4));
  Get(Pages(0));
  Get(Pages(4));
  Get(Pages(0));  // now the other region is the older one
  Get(Pages(8));
  EXPECT_TRUE(Has(Pages(0)));
  EXPECT_FALSE(Has(Pages(4)));
  EXPECT_TRUE(Has(Pages(8)));
  EXPECT_EQ(cache_->counters().evictions, 1u);
  EXPECT_EQ(cache_->counters().kept_bytes, 8 * page_);
  EXPECT_EQ(regions(), 2);
}

TEST_F(RegistrationCacheTest, WhatIsInUseIsNeverEvicted) {
  Budget(8);
  const auto a = Declare(0, 4), b = Declare(4, 4), c = Declare(8, 4);
  const auto first = Get(Pages(0));
  const auto second = Get(Pages(4));
  auto third = Get(Pages(8));
  EXPECT_EQ(cache_->counters().evictions, 0u);
  EXPECT_EQ(cache_->counters().kept_bytes, 8 * page_) << "the third is not";
  EXPECT_EQ(Get(Pages(8)), third) << "but it is shared";
  third.reset();
  EXPECT_EQ(regions(), 2);
  EXPECT_TRUE(Has(Pages(0)));
  EXPECT_TRUE(Has(Pages(4)));
}

TEST_F(RegistrationCacheTest, LargerThanTheBudgetIsNotKept) {
  const auto declared = Declare(0, 32);
  Get(Pages(0, 17));
  EXPECT_EQ(regions(), 0);
  EXPECT_EQ(cache_->counters().kept_bytes, 0u);
}

TEST_F(RegistrationCacheTest, WithoutBudgetNothingIsKept) {
  Budget(0);
  const auto declared = Declare(0, 1);
  Get(Pages(0));
  EXPECT_EQ(regions(), 0);
}

TEST_F(RegistrationCacheTest, AccessIsWhatWasAskedFor) {
  const auto declared = Declare(0, 1);
  const auto narrow = Get(Pages(0));
  const auto wide = Get(Pages(0), kAccess | IBV_ACCESS_LOCAL_WRITE);
  EXPECT_NE(narrow, wide);
  EXPECT_EQ(Get(Pages(0), IBV_ACCESS_LOCAL_WRITE), wide);
}

TEST_F(RegistrationCacheTest, LockedMemoryThatIsShortIsTakenFromTheUnused) {
  const auto a = Declare(0, 2), b = Declare(2, 2), c = Declare(4, 2);
  Get(Pages(0));
  const auto used = Get(Pages(2));
  verbs_.FailNext(Call::kRegMr, ENOMEM);
  EXPECT_NE(Get(Pages(4)), nullptr);
  EXPECT_FALSE(Has(Pages(0)));
  EXPECT_TRUE(Has(Pages(2)));
}

TEST_F(RegistrationCacheTest, RangeThatCannotBeRegisteredIsTriedInPart) {
  const auto declared = Declare(0, 8);
  verbs_.FailNext(Call::kRegMr, EFAULT);
  EXPECT_EQ(Get(Pages(3))->region()->addr, At(3));
}

TEST_F(RegistrationCacheTest, FailureIsTheDevices) {
  verbs_.FailNext(Call::kRegMr, EFAULT);
  EXPECT_EQ(cache_->Get(Pages(0), kAccess).status().code(),
            absl::StatusCode::kInternal);
  // Fails the registration. The cache has no unused region that it could drop
  // before a second attempt.
  verbs_.FailNext(Call::kRegMr, ENOMEM);
  EXPECT_EQ(cache_->Get(Pages(0), kAccess).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(cache_->counters().misses, 0u);
}

TEST_F(RegistrationCacheTest, ThreadsDeclareUseAndEnd) {
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int round = 0; round < 300; ++round) {
        auto declared = Declare(t * 8, 8);
        auto used = Get(Pages(t * 8 + 1));
        // The offset of another thread's memory, which may be freed at any
        // time.
        const size_t other = (t + 1) % 4 * 8;
        (void)cache_->Find(Pages(other), kAccess);
        if (round % 2 == 0) used.reset();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(regions(), 0);
  EXPECT_EQ(cache_->counters().kept_bytes, 0u);
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
