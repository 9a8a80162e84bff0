// Tests StableMemory (an owner's promise that a range stays mapped) and the
// watchers that are called when a promise ends.

#include "transport/memory/stable_memory.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace memory {
namespace {

class Watcher : public StableMemoryWatcher {
 public:
  void OnRangeEnded(const StableRange& range) override {
    EXPECT_TRUE(range.is_over());
    // Expects that the range can no longer be found when the watchers are
    // called.
    EXPECT_EQ(FindStable(range.data(), 1), nullptr);
    over.push_back(range.data());
  }
  std::vector<const uint8_t*> over;
};

class StableMemoryTest : public testing::Test {
 protected:
  std::unique_ptr<StableMemory> Declare(size_t offset, size_t size) {
    auto declared = StableMemory::Declare(bytes_.data() + offset, size);
    EXPECT_TRUE(declared.ok()) << declared.status();
    return declared.ok() ? *std::move(declared) : nullptr;
  }
  const uint8_t* At(size_t offset) const { return bytes_.data() + offset; }

  const std::vector<uint8_t> bytes_ = std::vector<uint8_t>(1000);
};

TEST_F(StableMemoryTest, PartsOfADeclaredRangeAreFound) {
  const auto declared = Declare(100, 200);
  for (const auto& part : std::vector<std::pair<size_t, size_t>>{
           {100, 200}, {100, 1}, {299, 1}, {150, 50}, {300, 0}}) {
    const auto found = FindStable(At(part.first), part.second);
    ASSERT_NE(found, nullptr) << part.first << " " << part.second;
    EXPECT_EQ(found->data(), At(100));
    EXPECT_EQ(found->size(), 200u);
    EXPECT_FALSE(found->is_over());
  }
}

TEST_F(StableMemoryTest, WhatReachesOutsideIsNotFound) {
  const auto declared = Declare(100, 200);
  const auto next = Declare(300, 100);
  for (const auto& part : std::vector<std::pair<size_t, size_t>>{
           {99, 2}, {0, 100}, {100, 201}, {299, 2}, {150, ~size_t{0}}}) {
    EXPECT_EQ(FindStable(At(part.first), part.second), nullptr)
        << part.first << " " << part.second;
  }
}

TEST_F(StableMemoryTest, NothingIsNoMemory) {
  EXPECT_EQ(StableMemory::Declare(nullptr, 10).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StableMemory::Declare(At(0), 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(StableMemoryTest, RangesDoNotOverlap) {
  auto declared = Declare(100, 200);
  for (const auto& part : std::vector<std::pair<size_t, size_t>>{
           {100, 200}, {99, 2}, {299, 2}, {150, 1}, {0, 1000}}) {
    EXPECT_EQ(
        StableMemory::Declare(At(part.first), part.second).status().code(),
        absl::StatusCode::kAlreadyExists)
        << part.first << " " << part.second;
  }
  const auto before = Declare(0, 100);
  const auto behind = Declare(300, 700);
  declared.reset();
  EXPECT_NE(Declare(100, 200), nullptr) << "it is free again";
}

TEST_F(StableMemoryTest, EndIsToldToWhoeverStillWatches) {
  const auto watcher = std::make_shared<Watcher>();
  auto gone = std::make_shared<Watcher>();
  WatchStableMemory(watcher);
  WatchStableMemory(gone);
  gone.reset();
  auto declared = Declare(100, 200);
  const auto other = Declare(300, 1);
  const auto range = FindStable(At(100), 200);
  declared.reset();
  EXPECT_EQ(watcher->over, std::vector<const uint8_t*>{At(100)});
  EXPECT_TRUE(range->is_over());
  EXPECT_NE(FindStable(At(300), 1), nullptr);
}

}  // namespace
}  // namespace memory
}  // namespace penstock
