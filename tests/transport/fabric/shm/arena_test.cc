#include "transport/fabric/shm/arena.h"

#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(Arena, MemoryIsUsedAgain) {
  auto arena = Arena::Create(64 * kMiB);
  const uint8_t* first;
  {
    auto lease = arena->Allocate(kMiB);
    ASSERT_TRUE(lease.ok()) << lease.status();
    first = (*lease)->data();
    EXPECT_EQ(arena->used(), kMiB);
  }
  EXPECT_EQ(arena->used(), 0u);
  auto again = arena->Allocate(kMiB);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->data(), first);
}

TEST(Arena, GrowsByLargerSegments) {
  auto arena = Arena::Create(64 * kMiB);
  std::vector<std::shared_ptr<ArenaLease>> leases;
  leases.push_back(arena->Allocate(12 * kMiB).value());
  EXPECT_EQ(arena->reserved(), 16 * kMiB);
  leases.push_back(arena->Allocate(12 * kMiB).value());
  EXPECT_EQ(arena->reserved(), 48 * kMiB);
  EXPECT_NE(leases[0]->place().segment_id, leases[1]->place().segment_id);
  EXPECT_EQ(leases[1]->place().segment_size, 32 * kMiB);
}

TEST(Arena, RequestLargerThanTheStepGetsItsOwnSegment) {
  auto arena = Arena::Create(64 * kMiB);
  auto lease = arena->Allocate(40 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_EQ((*lease)->place().segment_size, 40 * kMiB);
}

TEST(Arena, BudgetIsKept) {
  auto arena = Arena::Create(20 * kMiB);
  EXPECT_TRUE(absl::IsResourceExhausted(arena->Allocate(21 * kMiB).status()));
  auto lease = arena->Allocate(10 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_TRUE(absl::IsResourceExhausted(arena->Allocate(7 * kMiB).status()));
  EXPECT_TRUE(
      absl::IsResourceExhausted(arena->Allocate(~uint64_t{0}).status()));
  EXPECT_TRUE(arena->Allocate(3 * kMiB).ok());
  EXPECT_LE(arena->reserved(), 20 * kMiB);
}

TEST(Arena, LeaseOutlivesTheArenasOtherOwners) {
  auto arena = Arena::Create(16 * kMiB);
  std::shared_ptr<ArenaLease> lease = arena->Allocate(kMiB).value();
  arena.reset();
  lease->data()[kMiB - 1] = 5;
  EXPECT_EQ(lease->data()[kMiB - 1], 5);
}

TEST(Arena, FindsWhatLiesInOneOfItsSegments) {
  auto arena = Arena::Create(64 * kMiB);
  std::vector<std::shared_ptr<ArenaLease>> leases;
  for (int i = 0; i < 2; ++i) {
    leases.push_back(arena->Allocate(12 * kMiB).value());
  }
  const Place place = leases[1]->place();
  const uint8_t* data = leases[1]->data();
  const auto found = arena->Find(data + 100, 12 * kMiB - 100);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->segment_id, place.segment_id);
  EXPECT_EQ(found->segment_fd, place.segment_fd);
  EXPECT_EQ(found->offset, place.offset + 100);
  const uint8_t* begin = data - place.offset;
  EXPECT_TRUE(arena->Find(begin, place.segment_size).has_value());
  EXPECT_FALSE(arena->Find(begin, place.segment_size + 1).has_value());
  EXPECT_FALSE(arena->Find(begin + 1, ~uint64_t{0}).has_value());
  const std::vector<uint8_t> elsewhere(10);
  EXPECT_FALSE(arena->Find(elsewhere.data(), 10).has_value());
}

TEST(Arena, SegmentsAreStableMemoryForAsLongAsTheyAreThere) {
  auto arena = Arena::Create(64 * kMiB);
  std::shared_ptr<ArenaLease> lease = arena->Allocate(kMiB).value();
  const uint8_t* const data = lease->data();
  EXPECT_NE(memory::FindStable(data, kMiB), nullptr);
  lease.reset();
  EXPECT_NE(memory::FindStable(data, kMiB), nullptr);
  arena.reset();
  EXPECT_EQ(memory::FindStable(data, kMiB), nullptr);
}

TEST(Arena, ThreadsShareIt) {
  auto arena = Arena::Create(16 * kMiB);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&arena, t] {
      for (int i = 0; i < 2000; ++i) {
        auto lease = arena->Allocate(1000 + 64 * t);
        ASSERT_TRUE(lease.ok());
        (*lease)->data()[0] = static_cast<uint8_t>(t);
        ASSERT_EQ((*lease)->data()[0], t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(arena->used(), 0u);
}

class Watcher : public ArenaWatcher {
 public:
  void OnGivenBack(uint32_t segment_id) override {
    std::lock_guard<std::mutex> lock(mu_);
    ids_.push_back(segment_id);
  }
  void ReclaimLoans() override {}
  std::vector<uint32_t> ids() {
    std::lock_guard<std::mutex> lock(mu_);
    return ids_;
  }

 private:
  std::mutex mu_;
  std::vector<uint32_t> ids_;
};

class IdleArena : public testing::Test {
 protected:
  void Use(uint64_t mib) {
    leases_.push_back(arena_->Allocate(mib * kMiB).value());
  }
  bool WaitForReserved(uint64_t mib) {
    return WaitUntil([=] { return arena_->reserved() == mib * kMiB; });
  }
  static uint32_t IdOf(const std::shared_ptr<ArenaLease>& lease) {
    return lease->place().segment_id;
  }

  std::shared_ptr<Arena> arena_ = Arena::Create(
      256 * kMiB, HugePages::kOff, /*idle_time=*/absl::Milliseconds(1));
  std::vector<std::shared_ptr<ArenaLease>> leases_;
};

TEST_F(IdleArena, GivesBackAllButTheFirstSegment) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 3; ++i) Use(12);
    EXPECT_EQ(arena_->reserved(), (16 + 32) * kMiB);
    leases_.clear();
    EXPECT_TRUE(WaitForReserved(16));
  }
}

TEST_F(IdleArena, KeepsASegmentOfWhichAnythingIsUsed) {
  for (uint64_t mib : {12, 24, 48}) Use(mib);
  EXPECT_EQ(arena_->reserved(), (16 + 32 + 64) * kMiB);
  leases_[0] = nullptr;
  leases_[2] = nullptr;
  EXPECT_TRUE(WaitForReserved(16 + 32));
  leases_[1]->data()[24 * kMiB - 1] = 1;
  leases_.clear();
  EXPECT_TRUE(WaitForReserved(16));
}

TEST_F(IdleArena, TellsWhoeverWatches) {
  auto watcher = std::make_shared<Watcher>();
  arena_->AddWatcher(watcher);
  for (int i = 0; i < 100; ++i) {
    // Adds watchers that are destroyed immediately, which must do no harm.
    arena_->AddWatcher(std::make_shared<Watcher>());
  }
  for (uint64_t mib : {12, 24}) Use(mib);
  const uint32_t id = IdOf(leases_[1]);
  const uint8_t* const data = leases_[1]->data();
  EXPECT_NE(memory::FindStable(data, kMiB), nullptr);
  leases_.clear();
  EXPECT_TRUE(WaitUntil([&] { return !watcher->ids().empty(); }));
  EXPECT_EQ(watcher->ids(), std::vector<uint32_t>{id});
  EXPECT_TRUE(
      WaitUntil([data] { return memory::FindStable(data, kMiB) == nullptr; }));
}

TEST_F(IdleArena, TrafficThatComesAndGoesHasItsSegmentsAgain) {
  arena_ = Arena::Create(256 * kMiB, HugePages::kOff, absl::Seconds(3600));
  for (int round = 0; round < 100; ++round) {
    for (uint64_t mib : {12, 24}) Use(mib);
    EXPECT_EQ(arena_->reserved(), (16 + 32) * kMiB);
    leases_.clear();
  }
}

TEST(Arena, DefaultBudgetIsBounded) {
  EXPECT_GT(Arena::DefaultBudget(), 0u);
  EXPECT_LE(Arena::DefaultBudget(), 1024 * kMiB);
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
