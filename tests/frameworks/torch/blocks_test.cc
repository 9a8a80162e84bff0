#include "frameworks/torch/blocks.h"

#include <cstdint>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collectives/group.h"
#include "gtest/gtest.h"
#include "tests/frameworks/torch/memory_board.h"

namespace penstock {
namespace pytorch {
namespace {

using Sizes = std::vector<std::vector<int64_t>>;

// Returns the byte at `index` of the block that rank `from` sends to rank `to`.
uint8_t ByteOf(int from, int to, int64_t index) {
  return static_cast<uint8_t>(from * 31 + to * 7 + index * 13);
}

// Exchanges blocks of sizes[from][to] bytes, and returns the status. `lie`
// changes a size that rank 0 expects.
absl::Status Exchange(collectives::Group* group, const Sizes& sizes, int lie) {
  const int rank = group->rank();
  const int ranks = group->ranks();
  std::vector<std::vector<uint8_t>> sent(ranks), received(ranks);
  std::vector<ConstBlock> in;
  std::vector<Block> out;
  for (int peer = 0; peer < ranks; ++peer) {
    for (int64_t i = 0; i < sizes[rank][peer]; ++i) {
      sent[peer].push_back(ByteOf(rank, peer, i));
    }
    received[peer].resize(sizes[peer][rank] + (rank == 0 ? lie : 0));
    in.push_back({sent[peer].data(), sizes[rank][peer]});
    out.push_back(
        {received[peer].data(), static_cast<int64_t>(received[peer].size())});
  }
  absl::Status status = ExchangeBlocks(group, in, out);
  if (!status.ok()) return status;
  for (int peer = 0; peer < ranks; ++peer) {
    for (int64_t i = 0; i < sizes[peer][rank]; ++i) {
      if (received[peer][i] != ByteOf(peer, rank, i)) {
        return absl::DataLossError("a byte is wrong");
      }
    }
  }
  return absl::OkStatus();
}

Sizes RandomSizes(std::mt19937* random, int ranks) {
  Sizes sizes(ranks, std::vector<int64_t>(ranks));
  for (auto& row : sizes) {
    for (int64_t& size : row) {
      // Draws log-uniform sizes, which are often 0. The total exceeds one
      // round.
      const int bits = static_cast<int>((*random)() % 23);
      size = bits == 0 ? 0 : static_cast<int64_t>((*random)() % (1u << bits));
    }
  }
  return sizes;
}

TEST(BlocksTest, BlocksOfAllSizesArrive) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (const int ranks : {1, 2, 3, 5}) {
    std::vector<Sizes> rounds;
    for (int i = 0; i < 5; ++i) rounds.push_back(RandomSizes(&random, ranks));
    RunRanks(ranks, [&](collectives::Group* group) {
      for (const Sizes& sizes : rounds) {
        EXPECT_EQ(Exchange(group, sizes, 0), absl::OkStatus());
      }
    });
  }
}

TEST(BlocksTest, ADifferenceIsReportedToAllAndTheGroupGoesOn) {
  const Sizes sizes = {{4, 5, 6}, {7, 8, 9}, {1, 2, 3}};
  RunRanks(3, [&](collectives::Group* group) {
    const absl::Status status = Exchange(group, sizes, 1);
    EXPECT_EQ(status, absl::InvalidArgumentError(
                          "rank 0 has 4 bytes for rank 0, which expects 5"));
    EXPECT_EQ(Exchange(group, sizes, 0), absl::OkStatus());
  });
}

TEST(BlocksTest, AListOfAnotherLengthIsRefused) {
  RunRanks(1, [&](collectives::Group* group) {
    EXPECT_EQ(ExchangeBlocks(group, {}, {}).code(),
              absl::StatusCode::kInvalidArgument);
  });
}

}  // namespace
}  // namespace pytorch
}  // namespace penstock
