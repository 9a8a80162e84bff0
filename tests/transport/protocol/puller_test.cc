#include "transport/protocol/puller.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace penstock {
namespace protocol {
namespace {

using State = Puller::State;

const absl::Status kOk;

// Returns a puller of ten bytes in chunks of four, with two reads at once.
Puller Started(std::vector<Puller::Chunk>* reads) {
  Puller puller({10}, 4, 2);
  *reads = puller.Start();
  return puller;
}

Puller Started() {
  std::vector<Puller::Chunk> reads;
  return Started(&reads);
}

TEST(Puller, StartsUpToTheLimit) {
  std::vector<Puller::Chunk> reads;
  Puller puller = Started(&reads);
  ASSERT_EQ(reads.size(), 2u);
  EXPECT_EQ(reads[0].offset, 0u);
  EXPECT_EQ(reads[0].length, 4u);
  EXPECT_EQ(reads[1].offset, 4u);
  EXPECT_EQ(reads[1].length, 4u);
  EXPECT_EQ(puller.state(), State::kReading);
  EXPECT_FALSE(puller.finished());
}

TEST(Puller, EachReadThatEndsMakesRoomForTheNext) {
  Puller puller = Started();
  const std::vector<Puller::Chunk> reads = puller.OnReadDone(kOk);
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_EQ(reads[0].offset, 8u);
  EXPECT_EQ(reads[0].length, 2u);
  EXPECT_TRUE(puller.OnReadDone(kOk).empty());
  EXPECT_EQ(puller.state(), State::kReading);
  EXPECT_TRUE(puller.OnReadDone(kOk).empty());
  EXPECT_EQ(puller.state(), State::kDone);
  EXPECT_TRUE(puller.finished());
  EXPECT_TRUE(puller.error().ok());
}

TEST(Puller, TheFirstChunkMayBeOfAnotherSize) {
  Puller larger({10}, 4, 2, 5);
  std::vector<Puller::Chunk> reads = larger.Start();
  ASSERT_EQ(reads.size(), 2u);
  EXPECT_EQ(reads[0].length, 5u);
  EXPECT_EQ(reads[1].offset, 5u);
  EXPECT_EQ(reads[1].length, 4u);
  Puller whole({10}, 4, 2, 20);
  reads = whole.Start();
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_EQ(reads[0].length, 10u);
}

TEST(Puller, ChunksCoverTheMessageOnce) {
  for (uint64_t length = 1; length < 40; ++length) {
    for (size_t chunk = 1; chunk < 12; ++chunk) {
      for (int at_once = 1; at_once < 5; ++at_once) {
        Puller puller({length}, chunk, at_once);
        std::vector<Puller::Chunk> under_way = puller.Start();
        uint64_t next = 0;
        while (!puller.finished()) {
          ASSERT_FALSE(under_way.empty());
          ASSERT_LE(under_way.size(), static_cast<size_t>(at_once));
          EXPECT_EQ(under_way[0].offset, next);
          EXPECT_LE(under_way[0].length, chunk);
          next += under_way[0].length;
          under_way.erase(under_way.begin());
          for (const Puller::Chunk& read : puller.OnReadDone(kOk)) {
            under_way.push_back(read);
          }
        }
        EXPECT_TRUE(under_way.empty());
        EXPECT_EQ(next, length);
        EXPECT_EQ(puller.state(), State::kDone);
      }
    }
  }
}

// Expects that the chunks cover each part from its beginning to its end, one
// part after another.
TEST(Puller, NoChunkIsOfTwoParts) {
  const std::vector<uint64_t> parts = {1, 7, 4, 9, 1};
  for (size_t chunk = 1; chunk < 12; ++chunk) {
    Puller puller(parts, chunk, 1);
    std::vector<Puller::Chunk> reads = puller.Start();
    uint64_t offset = 0;
    for (size_t part = 0; part < parts.size(); ++part) {
      for (uint64_t in_part = 0; in_part < parts[part];) {
        ASSERT_EQ(reads.size(), 1u);
        EXPECT_EQ(reads[0].part, part);
        EXPECT_EQ(reads[0].part_offset, in_part);
        EXPECT_EQ(reads[0].offset, offset);
        EXPECT_EQ(reads[0].length,
                  std::min<uint64_t>(chunk, parts[part] - in_part));
        in_part += reads[0].length;
        offset += reads[0].length;
        reads = puller.OnReadDone(kOk);
      }
    }
    EXPECT_EQ(puller.state(), State::kDone);
  }
}

TEST(Puller, LengthsAboveAllMemoryAreCutRightly) {
  Puller puller({~uint64_t{0}}, ~size_t{0} / 2, 4);
  const std::vector<Puller::Chunk> reads = puller.Start();
  ASSERT_EQ(reads.size(), 3u);
  EXPECT_EQ(reads[2].offset, ~uint64_t{0} - 1);
  EXPECT_EQ(reads[2].length, 1u);
}

TEST(Puller, ErrorWaitsForTheReadsUnderWay) {
  Puller puller = Started();
  EXPECT_TRUE(puller.OnReadDone(absl::NotFoundError("first")).empty());
  EXPECT_EQ(puller.state(), State::kFailing);
  EXPECT_FALSE(puller.finished());
  EXPECT_TRUE(puller.OnReadDone(kOk).empty());
  EXPECT_EQ(puller.state(), State::kFailed);
  EXPECT_TRUE(puller.finished());
  EXPECT_EQ(puller.error(), absl::NotFoundError("first"));
}

TEST(Puller, FirstErrorWins) {
  Puller puller = Started();
  puller.OnReadDone(absl::NotFoundError("first"));
  puller.OnReadDone(absl::UnavailableError("an effect"));
  EXPECT_EQ(puller.state(), State::kFailed);
  EXPECT_EQ(puller.error(), absl::NotFoundError("first"));
}

TEST(Puller, ErrorOfTheOnlyReadFailsAtOnce) {
  Puller puller({3}, 4, 2);
  EXPECT_EQ(puller.Start().size(), 1u);
  EXPECT_TRUE(puller.OnReadDone(absl::NotFoundError("x")).empty());
  EXPECT_EQ(puller.state(), State::kFailed);
}

TEST(Puller, AbandonWaitsForTheReadsUnderWay) {
  Puller puller = Started();
  puller.Abandon();
  EXPECT_EQ(puller.state(), State::kFailing);
  EXPECT_TRUE(puller.OnReadDone(kOk).empty());
  EXPECT_EQ(puller.state(), State::kFailing);
  EXPECT_TRUE(puller.OnReadDone(kOk).empty());
  EXPECT_EQ(puller.state(), State::kFailed);
  EXPECT_TRUE(absl::IsCancelled(puller.error()));
}

TEST(Puller, AbandonBeforeTheStartFailsAtOnce) {
  Puller puller({10}, 4, 2);
  puller.Abandon();
  EXPECT_EQ(puller.state(), State::kFailed);
  EXPECT_TRUE(absl::IsCancelled(puller.error()));
}

TEST(Puller, AbandonWhileFailingKeepsTheFirstError) {
  Puller puller = Started();
  puller.OnReadDone(absl::NotFoundError("first"));
  puller.Abandon();
  EXPECT_EQ(puller.state(), State::kFailing);
  puller.OnReadDone(kOk);
  EXPECT_EQ(puller.error(), absl::NotFoundError("first"));
}

TEST(Puller, ErrorWhileAbandonedKeepsTheCancellation) {
  Puller puller = Started();
  puller.Abandon();
  puller.OnReadDone(absl::NotFoundError("an effect"));
  puller.OnReadDone(kOk);
  EXPECT_EQ(puller.state(), State::kFailed);
  EXPECT_TRUE(absl::IsCancelled(puller.error()));
}

TEST(Puller, TerminalStatesIgnoreAbandon) {
  Puller done({3}, 4, 2);
  done.Start();
  done.OnReadDone(kOk);
  done.Abandon();
  EXPECT_EQ(done.state(), State::kDone);
  EXPECT_TRUE(done.error().ok());
  Puller failed({3}, 4, 2);
  failed.Start();
  failed.OnReadDone(absl::NotFoundError("first"));
  failed.Abandon();
  EXPECT_EQ(failed.state(), State::kFailed);
  EXPECT_EQ(failed.error(), absl::NotFoundError("first"));
}

}  // namespace
}  // namespace protocol
}  // namespace penstock
