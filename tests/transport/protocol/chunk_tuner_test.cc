#include "transport/protocol/chunk_tuner.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace protocol {
namespace {

constexpr size_t kKiB = 1024;
constexpr SizeBounds kBounds{64 * kKiB, 4 * kKiB, 1024 * kKiB};
constexpr int kReads = 4;

// A path whose latency and bandwidth determine when its reads end.
struct Path {
  double latency_ns;
  double ns_per_byte;
};

// A reader of messages that have up to four pieces. With `together_ns`, the
// reader notices the ends of several reads at the same time.
class Reader {
 public:
  explicit Reader(ChunkTuner* tuner) : tuner_(tuner) {}

  // The time, in nanoseconds, within which the ends of reads are noticed
  // together, at the end of the last read. With 0, each end is noticed
  // separately.
  uint64_t together_ns = 0;

  void Read(const Path& path, int messages) {
    for (int i = 0; i < messages; ++i) ReadOne(path, 1 + i % kReads);
  }

 private:
  void ReadOne(const Path& path, int reads) {
    ASSERT_TRUE(tuner_->idle());
    tuner_->Begin(now_ns_);
    const size_t bytes = tuner_->chunk_bytes();
    for (int i = 0; i < reads; ++i) tuner_->OnRead(bytes, 0);
    std::vector<uint64_t> ends;
    for (int i = 1; i <= reads; ++i) {
      ends.push_back(now_ns_ + path.latency_ns + path.ns_per_byte * bytes * i);
    }
    for (int i = 0; i < reads; ++i) {
      if (together_ns > 0) ends[i] = ends.back() + together_ns * i;
      ASSERT_TRUE(tuner_->wants_end());
      tuner_->OnReadDone(true, ends[i]);
    }
    EXPECT_FALSE(tuner_->wants_end());
    now_ns_ = ends.back() + 1000;
  }

  ChunkTuner* const tuner_;
  uint64_t now_ns_ = 1;
};

size_t SizeFor(const Path& path, bool pushed = false, uint64_t together = 0) {
  ChunkTuner tuner(kBounds, pushed, kReads);
  Reader reader(&tuner);
  reader.together_ns = together;
  reader.Read(path, 200);
  const size_t size = tuner.chunk_bytes();
  reader.Read(path, 200);
  EXPECT_EQ(tuner.chunk_bytes(), size);
  return size;
}

TEST(ChunkTunerTest, StartsWhereItIsTold) {
  EXPECT_EQ(ChunkTuner(kBounds, false, kReads).chunk_bytes(), 64 * kKiB);
}

// Tests that four concurrent reads together have four times the path's capacity
// (latency times bandwidth).
TEST(ChunkTunerTest, GrowsWithWhatThePathHolds) {
  EXPECT_EQ(SizeFor({4000, 0.1}), 64 * kKiB);
  EXPECT_EQ(SizeFor({12000, 0.1}), 128 * kKiB);
  EXPECT_EQ(SizeFor({24000, 0.1}), 256 * kKiB);
  EXPECT_EQ(SizeFor({1e6, 0.1}), 1024 * kKiB);
}

TEST(ChunkTunerTest, OnePieceTakesAMillisecondAtMost) {
  for (double ns_per_byte : {20.0, 40.0, 80.0, 160.0}) {
    const size_t size = SizeFor({4000, ns_per_byte});
    EXPECT_LT(size, 64 * kKiB) << ns_per_byte;
    EXPECT_LE(size * ns_per_byte, 1.02e6);
    EXPECT_GE(size * ns_per_byte, 0.3e6);
  }
  EXPECT_EQ(SizeFor({4000, 10000}), 4 * kKiB);
}

// Tests a path that holds 1 MB. There are four reads, so each gets a quarter of
// this.
TEST(ChunkTunerTest, ALongPathIsFilledThoughItIsSlow) {
  EXPECT_EQ(SizeFor({1e8, 100}), 256 * kKiB);
}

// Tests a slow long path. A piece may take a quarter of the latency and 0.6 ms,
// at 100 ns per byte: 16 KB.
TEST(ChunkTunerTest, ALongPathIsNotOverfilled) {
  EXPECT_EQ(SizeFor({4e6, 100}), 16 * kKiB);
}

// Tests reads whose ends are noticed together. All but the last of them suggest
// an unlimited bandwidth.
TEST(ChunkTunerTest, ReadsThatAreSeenTogetherCountOnce) {
  EXPECT_EQ(SizeFor({24000, 0.1}, false, 200), 256 * kKiB);
  EXPECT_EQ(SizeFor({4000, 20}, false, 200), 32 * kKiB);
}

// Tests a pushed first piece. The result is the same as if the path's capacity
// were 64 KiB less.
TEST(ChunkTunerTest, APushedReadIsNotTimed) {
  ChunkTuner tuner(kBounds, true, kReads);
  const Path path{24000, 0.1};
  uint64_t now_ns = 1;
  for (int i = 0; i < 400; ++i) {
    tuner.Begin(now_ns);
    const size_t bytes = tuner.chunk_bytes();
    tuner.OnRead(64 * kKiB, 0);
    for (int read = 1; read < kReads; ++read) tuner.OnRead(bytes, 0);
    tuner.OnReadDone(true, now_ns + 10);
    for (int read = 1; read < kReads; ++read) {
      tuner.OnReadDone(
          true, now_ns + path.latency_ns + path.ns_per_byte * bytes * read);
    }
    now_ns += 1e6;
  }
  EXPECT_EQ(tuner.chunk_bytes(), 128 * kKiB);
}

TEST(ChunkTunerTest, FollowsAPathThatChanges) {
  ChunkTuner tuner(kBounds, false, kReads);
  Reader reader(&tuner);
  for (int i = 0; i < 3; ++i) {
    reader.Read({24000, 0.1}, 100);
    EXPECT_EQ(tuner.chunk_bytes(), 256 * kKiB);
    reader.Read({1e6, 100}, 100);
    EXPECT_EQ(tuner.chunk_bytes(), 8 * kKiB);
  }
}

// Reads messages of one read each, four at once, so that the path is never
// idle.
void ReadWithoutPause(ChunkTuner* tuner, double ns_per_read, uint64_t latency,
                      int reads) {
  static uint64_t now_ns = 1;
  const uint64_t ends_after = std::max<uint64_t>(latency, 4 * ns_per_read);
  if (tuner->idle()) {
    tuner->Begin(now_ns);
    tuner->OnRead(64 * kKiB, now_ns);
    for (int i = 1; i < 4; ++i) {
      tuner->BeginBehindOthers();
      tuner->OnRead(64 * kKiB, now_ns);
    }
  }
  now_ns += ends_after;
  for (int i = 0; i < reads; ++i) {
    now_ns += ends_after / 4;
    tuner->OnReadDone(true, now_ns);
    tuner->BeginBehindOthers();
    tuner->OnRead(64 * kKiB, now_ns);
  }
}

TEST(ChunkTunerTest, ABusyPathShowsItsBandwidth) {
  ChunkTuner tuner(kBounds, false, kReads);
  Reader(&tuner).Read({24000, 0.1}, 100);
  EXPECT_EQ(tuner.chunk_bytes(), 256 * kKiB);
  ReadWithoutPause(&tuner, 6.5e6, 0, 400);
  EXPECT_EQ(tuner.chunk_bytes(), 8 * kKiB);
  ReadWithoutPause(&tuner, 65e3, 0, 400);
  EXPECT_EQ(tuner.chunk_bytes(), 256 * kKiB);
}

TEST(ChunkTunerTest, LatencyIsNotTakenForBandwidth) {
  ChunkTuner tuner(kBounds, false, kReads);
  Reader(&tuner).Read({20e6, 0.1}, 4);
  ReadWithoutPause(&tuner, 6500, 20.1e6, 400);
  EXPECT_EQ(tuner.chunk_bytes(), 64 * kKiB);
}

TEST(ChunkTunerTest, AFailedReadSaysNothing) {
  ChunkTuner tuner(kBounds, false, kReads);
  for (int i = 0; i < 400; ++i) {
    tuner.Begin(1);
    for (int read = 0; read < 2; ++read) tuner.OnRead(64 * kKiB, 0);
    tuner.OnReadDone(false, 1e9);
    EXPECT_FALSE(tuner.wants_end());
    tuner.OnReadDone(false, 1e9);
    EXPECT_TRUE(tuner.idle());
  }
  EXPECT_EQ(tuner.chunk_bytes(), 64 * kKiB);
}

TEST(ChunkTunerTest, ReadsBehindOthersAreNotOfTheOpening) {
  ChunkTuner tuner(kBounds, false, kReads);
  tuner.Begin(1);
  tuner.OnRead(1000, 0);
  tuner.BeginBehindOthers();
  tuner.OnRead(1000, 0);
  tuner.OnReadDone(true, 2000);
  EXPECT_FALSE(tuner.idle());
  tuner.OnReadDone(true, 0);
  EXPECT_TRUE(tuner.idle());
}

TEST(ChunkTunerTest, MoreReadsThanAreMeasuredEndAsWell) {
  ChunkTuner tuner(kBounds, false, 100);
  tuner.Begin(1);
  for (int i = 0; i < 100; ++i) tuner.OnRead(1000, 0);
  int timed = 0;
  for (int i = 0; i < 100; ++i) {
    timed += tuner.wants_end();
    tuner.OnReadDone(true, 1000 + i);
  }
  EXPECT_EQ(timed, 16);
  EXPECT_TRUE(tuner.idle());
}

TEST(ChunkTunerTest, WhatIsFixedWantsNoTime) {
  ChunkTuner tuner({5000, 5000, 5000}, false, kReads);
  EXPECT_FALSE(tuner.adapts());
  tuner.OnRead(5000, 0);
  EXPECT_FALSE(tuner.wants_end());
  tuner.OnReadDone(true, 0);
  EXPECT_TRUE(tuner.idle());
  EXPECT_EQ(tuner.chunk_bytes(), 5000u);
}

}  // namespace
}  // namespace protocol
}  // namespace penstock
