// Tests the limit on the size of a process's arenas.

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/transport/fabric/shm/child.h"
#include "transport/fabric/shm/arena.h"
#include "transport/fabric/shm/user_arenas.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(UserArenas, WhatOneMayGrowToIsSaidAtItsFirstUse) {
  ForkedChild child([] {  // the child has no arena yet
    constexpr uint64_t kBytes = 64 * kMiB;
    auto own = ArenaFor(geteuid(), HugePages::kTransparent, kBytes).value();
    EXPECT_EQ(ArenaFor(geteuid()).value(), own);
    EXPECT_TRUE(own->Allocate(40 * kMiB).ok());
    EXPECT_TRUE(absl::IsResourceExhausted(own->Allocate(kBytes + 1).status()));
    auto other = ArenaFor(2001, HugePages::kTransparent, kBytes).value();
    EXPECT_TRUE(other->Allocate(10 * kMiB).ok());
    EXPECT_TRUE(
        absl::IsResourceExhausted(other->Allocate(kBytes / 4 + 1).status()));
  });
  EXPECT_TRUE(child.Join());
}

TEST(UserArenas, ARaisedBudgetHoldsForAnArenaThatIsInUse) {
  auto arena = Arena::Create(20 * kMiB);
  const auto first = arena->Allocate(10 * kMiB).value();
  EXPECT_FALSE(arena->Allocate(30 * kMiB).ok());
  arena->RaiseBudget(60 * kMiB);
  EXPECT_TRUE(arena->Allocate(30 * kMiB).ok());
  arena->RaiseBudget(16 * kMiB);
  EXPECT_EQ(arena->budget(), 60 * kMiB);
  EXPECT_TRUE(absl::IsResourceExhausted(arena->Allocate(61 * kMiB).status()));
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
