#include "transport/memory/destinations.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace memory {
namespace {

using Registered = Destinations::Registered;

std::shared_ptr<Destinations> Make(
    std::vector<Destination> ranges,
    Registered registered = Registered::kForOneMessage,
    std::shared_ptr<const void> owner = nullptr) {
  return std::make_shared<Destinations>(std::move(ranges), std::move(owner),
                                        registered);
}

TEST(DestinationsTest, AreOrderedBySizeAndThenAsGiven) {
  uint8_t memory[100] = {};
  const auto destinations =
      Make({{memory, 20}, {memory + 30, 10}, {memory + 50, 20}});
  ASSERT_EQ(destinations->by_size().size(), 3u);
  EXPECT_EQ(destinations->by_size()[0].data, memory + 30);
  EXPECT_EQ(destinations->by_size()[1].data, memory);
  EXPECT_EQ(destinations->by_size()[2].data, memory + 50);
}

TEST(DestinationsTest, WhatIsEmptyOrOverlapsIsLeftOut) {
  uint8_t memory[100] = {};
  const auto destinations = Make({{memory + 10, 20},
                                  {memory + 10, 20},
                                  {memory, 11},
                                  {memory + 29, 1},
                                  {memory, 100},
                                  {memory + 15, 5},
                                  {memory + 50, 0},
                                  {nullptr, 8},
                                  {memory, 10},
                                  {memory + 30, 70}});
  ASSERT_EQ(destinations->by_size().size(), 3u);
  EXPECT_EQ(destinations->by_size()[0].size, 10u);
  EXPECT_EQ(destinations->by_size()[1].size, 20u);
  EXPECT_EQ(destinations->by_size()[2].size, 70u);
}

TEST(DestinationsTest, AreTakenByOneAtATime) {
  uint8_t memory[8] = {};
  const auto destinations = Make({{memory, 8}});
  EXPECT_FALSE(destinations->is_taken());
  std::shared_ptr<const void> taken = Destinations::Take(destinations);
  ASSERT_NE(taken, nullptr);
  std::shared_ptr<const void> share = taken;
  EXPECT_EQ(Destinations::Take(destinations), nullptr);
  taken.reset();
  EXPECT_TRUE(destinations->is_taken());
  EXPECT_EQ(Destinations::Take(destinations), nullptr);
  share.reset();
  EXPECT_FALSE(destinations->is_taken());
  EXPECT_NE(Destinations::Take(destinations), nullptr);
}

TEST(DestinationsTest, TheRightToThemKeepsTheirOwner) {
  uint8_t memory[8] = {};
  auto owner = std::make_shared<int>();
  std::weak_ptr<int> alive = owner;
  auto destinations =
      Make({{memory, 8}}, Registered::kForOneMessage, std::move(owner));
  std::shared_ptr<const void> taken = Destinations::Take(destinations);
  destinations.reset();
  EXPECT_FALSE(alive.expired());
  taken.reset();
  EXPECT_TRUE(alive.expired());
}

TEST(DestinationsTest, AreStableForLifeOnlyIfTheyAreForManyMessages) {
  uint8_t memory[100] = {};
  auto once = Make({{memory, 50}});
  EXPECT_EQ(FindStable(memory, 50), nullptr);
  auto often = Make({{memory, 50}, {memory + 50, 10}}, Registered::kForLife);
  EXPECT_NE(FindStable(memory, 50), nullptr);
  EXPECT_NE(FindStable(memory + 50, 10), nullptr);
  std::shared_ptr<const void> taken = Destinations::Take(often);
  often.reset();
  EXPECT_NE(FindStable(memory, 50), nullptr);
  taken.reset();
  EXPECT_EQ(FindStable(memory, 50), nullptr);
}

TEST(DestinationsTest, MemoryThatIsDeclaredAlreadyMayBeOne) {
  uint8_t memory[100] = {};
  auto declared = StableMemory::Declare(memory, 100).value();
  auto often = Make({{memory, 50}}, Registered::kForLife);
  EXPECT_EQ(often->by_size().size(), 1u);
  often.reset();
  EXPECT_NE(FindStable(memory, 100), nullptr);
}

}  // namespace
}  // namespace memory
}  // namespace penstock
