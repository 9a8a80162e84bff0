#include "transport/fabric/verbs/spare_block.h"

#include <cstring>
#include <memory>

#include "gtest/gtest.h"
#include "transport/base/steady_time.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr size_t kSize = 1024 * 1024;
constexpr uint64_t kLimit = 8 * kSize;
constexpr absl::Duration kIdle = absl::Seconds(5);

bool IsStable(const void* data) {
  return memory::FindStable(data, 1) != nullptr;
}

// Allocates, fills and frees a block. Returns the block's address. If the block
// is not kept, the memory is no longer stable.
const void* Use(SpareBlock* spare, size_t size) {
  const auto block = spare->Allocate(size);
  EXPECT_TRUE(block.ok()) << block.status();
  EXPECT_EQ(block->size, size);
  memset(block->data.get(), 1, size);
  EXPECT_TRUE(IsStable(block->data.get()));
  return block->data.get();
}

TEST(SpareBlockTest, WhatWasLetGoOfIsUsedAgain) {
  const auto spare = SpareBlock::Create(kLimit, kIdle);
  const void* const first = Use(spare.get(), kSize);
  EXPECT_TRUE(IsStable(first));
  for (size_t size : {kSize, kSize - 1, kSize / 2, kSize}) {
    EXPECT_EQ(Use(spare.get(), size), first) << size;
  }
}

TEST(SpareBlockTest, WhatIsInUseIsNobodyElses) {
  const auto spare = SpareBlock::Create(kLimit, kIdle);
  Use(spare.get(), kSize);
  const auto first = spare->Allocate(kSize);
  const auto second = spare->Allocate(kSize);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->data, second->data);
}

TEST(SpareBlockTest, SmallMessagesDoNotHoldLargeMemory) {
  const auto spare = SpareBlock::Create(kLimit, kIdle);
  const void* const large = Use(spare.get(), kSize);
  const void* const small = Use(spare.get(), kSize / 2 - 1);
  EXPECT_NE(small, large);
  // Expects that the large block is kept, because allocating it again costs
  // more.
  EXPECT_FALSE(IsStable(small));
  EXPECT_EQ(Use(spare.get(), kSize), large);
}

TEST(SpareBlockTest, OnlyTheLargestIsKept) {
  const auto spare = SpareBlock::Create(kLimit, kIdle);
  const void* const small = Use(spare.get(), kSize);
  const void* const large = Use(spare.get(), 2 * kSize);
  EXPECT_FALSE(IsStable(small));
  EXPECT_TRUE(IsStable(large));
}

TEST(SpareBlockTest, WhatIsAboveTheLimitIsFreed) {
  const auto spare = SpareBlock::Create(kLimit, kIdle);
  EXPECT_FALSE(IsStable(Use(spare.get(), kLimit + 1)));
  EXPECT_TRUE(IsStable(Use(spare.get(), kLimit)));
}

TEST(SpareBlockTest, WhatNobodyWantsGoesBackToTheSystem) {
  const auto spare = SpareBlock::Create(kLimit, kIdle);
  const void* const kept = Use(spare.get(), kSize);
  const absl::Time now = base::SteadyNow();
  spare->OnTick(now + kIdle / 2);
  EXPECT_TRUE(IsStable(kept));
  spare->OnTick(now + kIdle);
  EXPECT_FALSE(IsStable(kept));
}

TEST(SpareBlockTest, MemoryInUseOutlivesIt) {
  auto spare = SpareBlock::Create(kLimit, kIdle);
  auto block = spare->Allocate(kSize);
  ASSERT_TRUE(block.ok()) << block.status();
  const void* const data = block->data.get();
  spare = nullptr;
  memset(block->data.get(), 1, kSize);
  EXPECT_TRUE(IsStable(data));
  block->data = nullptr;
  EXPECT_FALSE(IsStable(data));
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
