// Tests messages that are read into memory of the program: the destination of
// each part, and how long a device may write there.

#include "transport/memory/destinations.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/session/destinations_test_util.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/memory/bytes.h"
#include "transport/session/message_reader.h"

namespace penstock {
namespace session {
namespace {

using Sizes = std::vector<size_t>;

TEST_F(DestinationsTest, PartsLandInPlacesOfTheirSize) {
  EXPECT_EQ(LandedOf({10, 1000, 20, 2000}, {1000, 2000}), (Sizes{0, 1}));
  EXPECT_EQ(LandedOf({1000}, {1000}), (Sizes{0}));
  EXPECT_EQ(LandedOf({1000, 1000, 1000}, {1000, 1000, 1000}), (Sizes{0, 1, 2}));
  EXPECT_EQ(LandedOf({9000, 9001}, {9000, 9001}), (Sizes{0, 1}));
}

TEST_F(DestinationsTest, PlacesMayComeInAnotherOrder) {
  EXPECT_EQ(LandedOf({10, 1000, 20, 2000}, {2000, 1000}), (Sizes{0, 1}));
}

TEST_F(DestinationsTest, PlacesOfOtherSizesAreLeft) {
  EXPECT_EQ(LandedOf({10, 1000, 20}, {999, 1001, 1030, 0}), Sizes());
  EXPECT_EQ(LandedOf({10, 1000, 20, 2000}, {999, 2000}), (Sizes{1}));
  EXPECT_EQ(LandedOf({1000, 1000}, {1000}), (Sizes{0}));
  EXPECT_EQ(LandedOf({1000}, {1000, 1000}), (Sizes{0}));
}

TEST_F(DestinationsTest, PathMayRefusePlaces) {
  EXPECT_EQ(LandedOf({2, 3}, {2, 3}), (Sizes{1}));
}

TEST_F(DestinationsTest, LifelineUsesNone) {
  reader_->LoseFastPath();
  EXPECT_EQ(LandedOf({1000, 2000}, {1000, 2000}), Sizes());
  EXPECT_FALSE(destinations_->is_taken());
}

// Tests that bytes keep their alignment in the remaining message.
TEST_F(DestinationsTest, RestLiesAsItDoesInTheMessage) {
  const memory::Payload payload = PayloadOf({8, 1000, 24, 1001, 7, 500});
  PostSizes({1000, 1001});
  BeginPosted(7, payload);
  Run();
  ASSERT_EQ(kept_.size(), 1u);
  size_t at = 0;
  ASSERT_EQ(kept_[0].pieces().size(), 5u);
  for (const memory::Bytes& piece : kept_[0].pieces()) {
    if (piece.size < 1000) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(piece.data) % 64, at % 64);
    }
    at += piece.size;
  }
}

TEST_F(DestinationsTest, MessageHasThemUntilItIsDropped) {
  PostSizes({1000});
  BeginPosted(7, PayloadOf({1000, 8}));
  Run();
  EXPECT_TRUE(destinations_->is_taken());
  BeginPosted(8, PayloadOf({1000, 9}));
  Run();
  ASSERT_EQ(kept_.size(), 2u);
  EXPECT_EQ(Landed(kept_[1]), Sizes());
  kept_.clear();
  EXPECT_FALSE(destinations_->is_taken());
  BeginPosted(9, PayloadOf({1000, 10}));
  Run();
  ASSERT_EQ(kept_.size(), 1u);
  EXPECT_EQ(Landed(kept_[0]), Sizes{0});
}

TEST_F(DestinationsTest, AbandonedReadHasThemUntilItEnds) {
  PostSizes({9000});
  BeginPosted(7, PayloadOf({9000}));
  destinations_.reset();
  reader_->Abandon(1);
  fast_.Step();
  EXPECT_FALSE(owner_.expired());
  Run();
  EXPECT_TRUE(owner_.expired());
  EXPECT_EQ(fast_.prepared(Side::kB), 0);
}

class DivertedDestinationsTest : public DestinationsTest {
 protected:
  DivertedDestinationsTest() : DestinationsTest(/*can_divert=*/true) {}
};

TEST_F(DivertedDestinationsTest, AbandonedReadLeavesThemImmediately) {
  PostSizes({9000});
  BeginPosted(7, PayloadOf({9000}));
  fast_.Step();
  uint8_t* const data = places_[0].data;
  EXPECT_NE(data[0], 'Z') << "the first chunk has not come";
  reader_->Abandon(1);
  EXPECT_FALSE(destinations_->is_taken());
  std::fill_n(data, 9000, 'F');
  Run();
  EXPECT_EQ(std::count(data, data + 9000, 'F'), 9000);
  EXPECT_EQ(Take(), Lines{"released 7"});
  EXPECT_EQ(reader_->in_use(), 0u);
}

// Tests that a lost path keeps the destinations until the path is destroyed.
TEST_F(DestinationsTest, LostPathHasThemUntilItIsDestroyed) {
  PostSizes({9000});
  const memory::Payload payload = PayloadOf({10, 9000});
  BeginPosted(7, payload);
  MessageReader::Filled filled = reader_->LoseFastPath();
  while (lifeline_.Step()) {
  }
  ASSERT_EQ(kept_.size(), 1u);
  EXPECT_EQ(Landed(kept_[0]), Sizes());
  EXPECT_TRUE(destinations_->is_taken());
  EXPECT_EQ(places_[0].data[0], 'Z');
  while (fast_.Step()) {
  }
  EXPECT_NE(places_[0].data[0], 'Z') << "the test has no late write";
  EXPECT_TRUE(ToString(kept_[0]) == ToString(payload));
  readers_[1].reset();
  filled.clear();
  EXPECT_FALSE(destinations_->is_taken());
}

TEST_F(DestinationsTest, FailedReadStartsOverElsewhere) {
  PostSizes({9000});
  const memory::Payload payload = PayloadOf({10, 9000});
  fast_.FailNthRead(Side::kB, 3);
  BeginPosted(7, payload);
  Run();
  ASSERT_EQ(kept_.size(), 1u);
  EXPECT_EQ(Landed(kept_[0]), Sizes());
  EXPECT_TRUE(ToString(kept_[0]) == ToString(payload));
  EXPECT_FALSE(destinations_->is_taken());
}

}  // namespace
}  // namespace session
}  // namespace penstock
