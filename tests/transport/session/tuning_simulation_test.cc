// Tests that two sessions find the right sizes for their link, and then keep
// them.

#include "gtest/gtest.h"
#include "tests/transport/session/tuning_test_util.h"

namespace penstock {
namespace session {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
// The size of a full frame, in bytes.
constexpr size_t kFrame = 16352;

// A link of 10 MB/s and a tenth of a millisecond: pieces of 8 KiB take 0.8 ms.
const Speed kSlow{100 * 1000, 100};
// A link of 10 MB/s over some thousand kilometres, which holds 200 KB.
const Speed kSlowAndFar{10 * 1000 * 1000, 100};
// A link of 10 GB/s with a latency of two microseconds each way. Such a link
// holds 40 KB; four pieces of 32 KiB are three times as much.
const Speed kFast{2000, 0.1};
// A link of 10 GB/s over some kilometres, which holds 1 MB.
const Speed kFar{50 * 1000, 0.1};

class ChunkSimulation : public TuningSimulation {
 protected:
  int SendLarge(Side from, int count) {
    return Send(from, count, 200 * kKiB, 2 * kMiB).chunk;
  }
};

TEST_F(ChunkSimulation, SlowLinkGetsSmallPieces) {
  Begin(kSlow, kSlow);
  EXPECT_EQ(chunk(kServer), 16 * kKiB);
  EXPECT_EQ(SendLarge(kClient, 60), 1);
  EXPECT_EQ(chunk(kServer), 8 * kKiB);
  EXPECT_EQ(SendLarge(kClient, 100), 0);
}

TEST_F(ChunkSimulation, FastLinkGetsPiecesThatFillIt) {
  Begin(kFast, kFast);
  EXPECT_EQ(SendLarge(kClient, 60), 1);
  EXPECT_EQ(chunk(kServer), 32 * kKiB);
  EXPECT_EQ(SendLarge(kClient, 100), 0);
}

TEST_F(ChunkSimulation, FarLinkGetsLargePieces) {
  Begin(kFar, kFar);
  EXPECT_EQ(SendLarge(kClient, 100), 6);
  EXPECT_EQ(chunk(kServer), 1 * kMiB);
  EXPECT_EQ(SendLarge(kClient, 100), 0);
}

TEST_F(ChunkSimulation, SlowLinkOfLongLatencyIsFilled) {
  Begin(kSlowAndFar, kSlowAndFar);
  EXPECT_EQ(SendLarge(kClient, 60), 2);
  EXPECT_EQ(chunk(kServer), 64 * kKiB);
  EXPECT_EQ(SendLarge(kClient, 100), 0);
}

TEST_F(ChunkSimulation, EachDirectionHasItsOwn) {
  Begin(kFast, Speed{kFast.latency_ns, kSlow.ns_per_byte});
  for (int i = 0; i < 60; ++i) {
    SendLarge(kClient, 1);
    SendLarge(kServer, 1);
  }
  EXPECT_EQ(chunk(kServer), 32 * kKiB);
  EXPECT_EQ(chunk(kClient), 8 * kKiB);
}

TEST_F(ChunkSimulation, FollowsALinkThatChanges) {
  Begin(kFast, kFast);
  SendLarge(kClient, 60);
  ASSERT_EQ(chunk(kServer), 32 * kKiB);
  for (Side side : {kClient, kServer}) SetSpeed(side, kSlow);
  EXPECT_EQ(SendLarge(kClient, 100), 2);
  EXPECT_EQ(chunk(kServer), 8 * kKiB);
  for (Side side : {kClient, kServer}) SetSpeed(side, kFast);
  EXPECT_EQ(SendLarge(kClient, 100), 2);
  EXPECT_EQ(chunk(kServer), 32 * kKiB);
}

// Tests a busy link with a few pauses, such as those of the sender's window. A
// read after a pause measures the latency, but a read behind other reads does
// not.
TEST_F(ChunkSimulation, BeginningsAreFoundInBusyTimes) {
  Begin(kFast, kFast);
  EXPECT_EQ(SendWithoutPause(kClient, 400, 500 * kKiB, 900 * kKiB), 1);
  EXPECT_EQ(chunk(kServer), 32 * kKiB);
}

TEST_F(ChunkSimulation, BusyTimesChangeNothingOnALinkThatStays) {
  Begin(kFar, kFar);
  SendLarge(kClient, 100);
  ASSERT_EQ(chunk(kServer), 1 * kMiB);
  EXPECT_EQ(SendWithoutPause(kClient, 400, 20 * kKiB, 900 * kKiB), 0);
  EXPECT_EQ(SendLarge(kClient, 100), 0);
}

// Tests a busy link that changes. The link shows its bandwidth immediately, and
// its latency only when it is idle again.
TEST_F(ChunkSimulation, FollowsABusyLinkThatChanges) {
  Begin(kFast, kFast);
  SendLarge(kClient, 60);
  ASSERT_EQ(chunk(kServer), 32 * kKiB);
  for (Side side : {kClient, kServer}) SetSpeed(side, kSlow);
  EXPECT_EQ(SendWithoutPause(kClient, 100, 200 * kKiB, 900 * kKiB), 2);
  EXPECT_EQ(chunk(kServer), 8 * kKiB);
  for (Side side : {kClient, kServer}) SetSpeed(side, kFast);
  EXPECT_EQ(SendWithoutPause(kClient, 100, 200 * kKiB, 900 * kKiB), 1);
  EXPECT_EQ(chunk(kServer), 16 * kKiB);
  EXPECT_EQ(SendLarge(kClient, 100), 1);
  EXPECT_EQ(chunk(kServer), 32 * kKiB);
}

// Tests a link whose latency is longer than the time that a piece may take.
TEST_F(ChunkSimulation, BusyLinkOfLongLatencyIsNotTakenForASlowOne) {
  const Speed long_way{10 * 1000 * 1000, 0.1};
  Begin(long_way, long_way);
  SendWithoutPause(kClient, 400, 20 * kKiB, 900 * kKiB);
  EXPECT_GE(chunk(kServer), 16 * kKiB);
}

// Tests noise with a wanted size, 45 KiB, in the middle between two steps.
TEST_F(ChunkSimulation, NoiseDoesNotMakeItOscillate) {
  Begin(Speed{2300, 0.1}, Speed{2300, 0.1});
  noise_ = 1.5;
  delayed_ = 17;
  EXPECT_LE(SendLarge(kClient, 2000), 3);
  EXPECT_GE(chunk(kServer), 32 * kKiB);
  EXPECT_LE(chunk(kServer), 64 * kKiB);
}

class EagerSimulation : public TuningSimulation {
 protected:
  int SendMixed(Side from, int count) {
    return Send(from, count, 1 * kKiB, 64 * kKiB).eager;
  }
};

// Tests costs for which the limit is low: announcing costs 4 us + 1 us, and
// copying costs 2 ns per byte.
TEST_F(EagerSimulation, WhereCopiesAreDearMessagesAreAnnounced) {
  costs_ = {1.0, 500};
  Begin(kFast, kFast);
  EXPECT_EQ(eager(kClient), 12 * kKiB);
  EXPECT_EQ(SendMixed(kClient, 2000), 2);
  EXPECT_EQ(eager(kClient), 3 * kKiB);
  EXPECT_EQ(eager(kServer), 12 * kKiB);  // the server has sent nothing
}

TEST_F(EagerSimulation, WhereTheLinkIsLongMessagesAreEager) {
  costs_ = {1.0, 500};
  Begin(kFar, kFar);
  EXPECT_EQ(SendMixed(kClient, 2000), 1);
  EXPECT_EQ(eager(kClient), kFrame);
}

// Tests costs for which the initial size is right: 5 us divided by 0.4 ns per
// byte give 12.5 KB.
TEST_F(EagerSimulation, StaysWhereItIsRight) {
  costs_ = {0.2, 500};
  Begin(kFast, kFast);
  noise_ = 1.3;
  delayed_ = 17;
  EXPECT_EQ(SendMixed(kClient, 3000), 0);
}

TEST_F(EagerSimulation, FollowsALinkThatChanges) {
  costs_ = {1.0, 500};
  Begin(kFar, kFar);
  SendMixed(kClient, 1000);
  ASSERT_EQ(eager(kClient), kFrame);
  for (Side side : {kClient, kServer}) SetSpeed(side, kFast);
  EXPECT_LE(SendMixed(kClient, 2000), 3);
  EXPECT_EQ(eager(kClient), 3 * kKiB);
}

// Tests noise with a wanted size in the middle between 6 and 12 KiB.
TEST_F(EagerSimulation, NoiseDoesNotMakeItOscillate) {
  costs_ = {0.29, 500};
  Begin(kFast, kFast);
  noise_ = 1.5;
  delayed_ = 17;
  EXPECT_LE(SendMixed(kClient, 4000), 2);
}

TEST_F(TuningSimulation, WhatIsFixedStays) {
  client_config_.tuning.eager_max_bytes = 5000;
  server_config_.tuning.chunk_bytes = 10000;
  costs_ = {1.0, 500};
  Begin(kFar, kFar);
  Send(kClient, 200, 1 * kKiB, 500 * kKiB);
  EXPECT_EQ(eager(kClient), 5000u);
  EXPECT_EQ(chunk(kServer), 10000u);
}

// Expects that the first read has the size that a pushing fabric will send.
TEST_F(TuningSimulation, TheFirstReadIsOfWhatIsPushed) {
  fast_options_.push_bytes = 16 * kKiB;
  server_config_.tuning.chunk_bytes = 5000;
  Begin(kFast, kFast);
  Send(kClient, 1, 26000, 26000);
  EXPECT_EQ(fast().counters(kServer).reads, 3u);
  Send(kClient, 1, 16 * kKiB, 16 * kKiB);
  EXPECT_EQ(fast().counters(kServer).reads, 4u);
}

TEST_F(TuningSimulation, WithoutAClockNothingMoves) {
  for (Config* config : {&client_config_, &server_config_}) {
    config->tuning.now_ns = nullptr;
  }
  costs_ = {1.0, 500};
  Begin(kFar, kFar);
  Send(kClient, 200, 1 * kKiB, 500 * kKiB);
  EXPECT_EQ(eager(kClient), 12 * kKiB);
  EXPECT_EQ(chunk(kServer), 16 * kKiB);
}

}  // namespace
}  // namespace session
}  // namespace penstock
