#include "transport/protocol/eager_tuner.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace penstock {
namespace protocol {
namespace {

constexpr size_t kKiB = 1024;
constexpr SizeBounds kBounds{8 * kKiB, 1 * kKiB, 64 * kKiB};

struct Costs {
  double copy_ns_per_byte;
  double announce_ns;
  double expose_ns_per_byte;
  double round_trips_ns;  // frames: announcement, question, answer, release
};

void Tell(EagerTuner* tuner, const Costs& costs, int times) {
  for (int i = 0; i < times; ++i) {
    const size_t bytes = 4 * kKiB * (1 + i % 8);
    tuner->OnCopied(bytes, costs.copy_ns_per_byte * bytes);
    tuner->OnAnnounced(bytes,
                       costs.announce_ns + costs.expose_ns_per_byte * bytes);
    tuner->OnReleased(bytes, costs.round_trips_ns + 0.3 * bytes);
  }
}

size_t LimitFor(bool peer_asks, const Costs& costs) {
  EagerTuner tuner(kBounds, peer_asks);
  Tell(&tuner, costs, 200);
  const size_t limit = tuner.eager_max_bytes();
  Tell(&tuner, costs, 200);
  EXPECT_EQ(tuner.eager_max_bytes(), limit);
  return limit;
}

TEST(EagerTunerTest, StartsWhereItIsTold) {
  EXPECT_EQ(EagerTuner(kBounds, true).eager_max_bytes(), 8 * kKiB);
}

// Tests the limit: the size at which copying costs as much as announcing, (4000
// + 2 * 1000) / (2 * copy), rounded to the nearest step.
TEST(EagerTunerTest, IsWhereBothCostTheSame) {
  EXPECT_EQ(LimitFor(true, {0.05, 1000, 0, 8000}), 64 * kKiB);
  EXPECT_EQ(LimitFor(true, {0.09, 1000, 0, 8000}), 32 * kKiB);
  EXPECT_EQ(LimitFor(true, {0.18, 1000, 0, 8000}), 16 * kKiB);
  EXPECT_EQ(LimitFor(true, {0.36, 1000, 0, 8000}), 8 * kKiB);
  EXPECT_EQ(LimitFor(true, {0.72, 1000, 0, 8000}), 4 * kKiB);
  EXPECT_EQ(LimitFor(true, {10, 1000, 0, 8000}), 1 * kKiB);
}

TEST(EagerTunerTest, APeerThatNeedNotAskDoesNotWait) {
  EXPECT_EQ(LimitFor(false, {0.1, 1600, 0, 1e9}), 16 * kKiB);
  EXPECT_EQ(LimitFor(true, {0.1, 1600, 0, 1e9}), 64 * kKiB);
}

TEST(EagerTunerTest, ExposingMayCopyToo) {
  EXPECT_EQ(LimitFor(false, {0.2, 1600, 0, 0}), 8 * kKiB);
  EXPECT_EQ(LimitFor(false, {0.2, 1600, 0.2, 0}), 16 * kKiB);
  EXPECT_EQ(LimitFor(false, {0.2, 1600, 0.5, 0}), 64 * kKiB);
}

TEST(EagerTunerTest, StaysUntilEverythingIsKnown) {
  for (int missing = 0; missing < 3; ++missing) {
    EagerTuner tuner(kBounds, true);
    for (int i = 0; i < 400; ++i) {
      const size_t bytes = 4 * kKiB * (1 + i % 8);
      if (missing != 0) tuner.OnCopied(bytes, 10 * bytes);
      if (missing != 1) tuner.OnAnnounced(bytes, 1000);
      if (missing != 2) tuner.OnReleased(bytes, 8000);
    }
    EXPECT_EQ(tuner.eager_max_bytes(), 8 * kKiB) << missing;
  }
}

TEST(EagerTunerTest, AnnouncementsOfOneSizeSayNothingOfWhatIsFixed) {
  EagerTuner tuner(kBounds, false);
  for (int i = 0; i < 400; ++i) {
    tuner.OnCopied(4 * kKiB, 100000);
    tuner.OnAnnounced(64 * kKiB, 1000);
  }
  EXPECT_EQ(tuner.eager_max_bytes(), 8 * kKiB);
}

// Returns the eager limit of a tuner on a link with this fixed round-trip time
// and this time per byte. A message of that size may occupy the link for half
// the fixed time plus 2.4 ms. The 2.4 ms are the time that the pieces of an
// announced message may take (kPipes * kMaxDelayNs of ChunkTuner). This rule
// never lowers the limit below the starting size, 8 KiB.
size_t LimitOnLink(double round_trips_ns, double ns_per_byte) {
  EagerTuner tuner(kBounds, true);
  for (int i = 0; i < 200; ++i) {
    const size_t bytes = 4 * kKiB * (1 + i % 8);
    tuner.OnCopied(bytes, 0.1 * bytes);
    tuner.OnAnnounced(bytes, 1000);
    tuner.OnReleased(bytes, round_trips_ns + ns_per_byte * bytes);
  }
  return tuner.eager_max_bytes();
}

TEST(EagerTunerTest, OthersDoNotWaitLongBehindAnEagerMessage) {
  EXPECT_EQ(LimitOnLink(40e6, 100), 64 * kKiB);  // (20 + 2.4) ms / 100 ns
  EXPECT_EQ(LimitOnLink(4e6, 100), 32 * kKiB);   // (2 + 2.4) ms / 100 ns
  EXPECT_EQ(LimitOnLink(4e6, 250), 16 * kKiB);
  EXPECT_EQ(LimitOnLink(4e6, 10000), 8 * kKiB);  // the first size
}

TEST(EagerTunerTest, FollowsCopyingWhereNothingIsAnnouncedAnyMore) {
  EagerTuner tuner(kBounds, true);
  Tell(&tuner, {0.05, 1000, 0, 8000}, 300);
  ASSERT_EQ(tuner.eager_max_bytes(), 64 * kKiB);
  for (int i = 0; i < 400; ++i) tuner.OnCopied(32 * kKiB, 10 * 32 * kKiB);
  EXPECT_EQ(tuner.eager_max_bytes(), 1 * kKiB);
}

TEST(EagerTunerTest, FollowsAnnouncementsWhereNothingIsCopiedAnyMore) {
  EagerTuner tuner(kBounds, false);
  Tell(&tuner, {10, 1000, 0, 8000}, 300);
  ASSERT_EQ(tuner.eager_max_bytes(), 1 * kKiB);
  for (int i = 0; i < 400; ++i) {
    tuner.OnAnnounced(4 * kKiB * (1 + i % 8), 10000000);
  }
  EXPECT_EQ(tuner.eager_max_bytes(), 64 * kKiB);
}

TEST(EagerTunerTest, FollowsWhatChanges) {
  EagerTuner tuner(kBounds, true);
  for (int i = 0; i < 3; ++i) {
    Tell(&tuner, {0.09, 1000, 0, 8000}, 300);
    EXPECT_EQ(tuner.eager_max_bytes(), 32 * kKiB);
    Tell(&tuner, {1.4, 1000, 0, 8000}, 300);
    EXPECT_EQ(tuner.eager_max_bytes(), 2 * kKiB);
  }
}

}  // namespace
}  // namespace protocol
}  // namespace penstock
