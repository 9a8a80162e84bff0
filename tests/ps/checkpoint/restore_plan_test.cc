// Tests which checkpoint of a chain each dense row is read from. A chain is an
// incremental checkpoint and its base checkpoints. The chains are in memory.

#include "ps/checkpoint/restore_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

namespace penstock::ps::checkpoint {
namespace {

Part Rows(uint64_t first, uint64_t rows) {
  Part part;
  part.first_row = first;
  part.rows = rows;
  return part;
}

// Returns a chain of one dense table. `parts` has the parts of each checkpoint,
// the newest first.
Chain ChainOf(uint64_t rows, const std::vector<std::vector<Part>>& parts) {
  TableDefinition table;
  table.name = "w";
  table.shape = {static_cast<int64_t>(rows)};
  Chain chain;
  for (const std::vector<Part>& each : parts) {
    Link link;
    link.manifest.model.tables = {table};
    link.footers.resize(1);
    link.footers[0].parts = each;
    chain.links.push_back(std::move(link));
  }
  return chain;
}

Wanted::Rows Want(uint64_t first, uint64_t rows) { return {0, first, rows}; }

// Returns the link that each row is read from, or -1 for no link. Fails if a
// row is read twice, or if spans are out of order.
std::vector<int> LinkOfEachRow(const DensePlan& plan, uint64_t rows) {
  std::vector<int> link(rows, -1);
  for (const auto& [key, spans] : plan) {
    uint64_t before = 0;
    for (const RowSpan& span : spans) {
      EXPECT_LE(before, span.first);
      EXPECT_LT(span.first, span.end);
      before = span.end;
      for (uint64_t row = span.first; row < span.end; ++row) {
        EXPECT_EQ(link[row], -1) << row;
        link[row] = static_cast<int>(std::get<0>(key));
      }
    }
  }
  return link;
}

TEST(RestorePlanTest, EachRowComesFromTheNewestThatHasIt) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int program = 0; program < 300; ++program) {
    constexpr uint64_t kRows = 60;
    std::vector<std::vector<Part>> parts(1 + random() % 4);
    std::vector<int> expected(kRows, -1);
    for (size_t link = 0; link < parts.size(); ++link) {
      // Makes the oldest link, which has all rows, in parts of any size and in
      // any order.
      for (uint64_t first = 0; first < kRows;) {
        const uint64_t count = std::min<uint64_t>(random() % 9, kRows - first);
        if (link + 1 == parts.size() || random() % 3 == 0) {
          parts[link].push_back(Rows(first, count));
          for (uint64_t i = first; i < first + count; ++i) {
            if (expected[i] < 0) expected[i] = static_cast<int>(link);
          }
        }
        first += count;
      }
      std::shuffle(parts[link].begin(), parts[link].end(), random);
    }
    std::vector<Wanted::Rows> wanted;
    for (uint64_t first = 0; first < kRows;) {
      const uint64_t count = std::min<uint64_t>(random() % 9, kRows - first);
      if (random() % 2 == 0) {
        wanted.push_back(Want(first, count));
      } else {
        std::fill_n(expected.begin() + first, count, -1);
      }
      first += count;
    }
    std::shuffle(wanted.begin(), wanted.end(), random);
    const auto plan = PlanDense(ChainOf(kRows, parts), wanted);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(LinkOfEachRow(*plan, kRows), expected);
  }
}

TEST(RestorePlanTest, RowsThatAreWantedTwiceAreNamed) {
  const Chain chain = ChainOf(100, {{Rows(0, 100)}});
  const auto message = [&](const std::vector<Wanted::Rows>& wanted) {
    const absl::Status status = PlanDense(chain, wanted).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(message({Want(50, 10), Want(40, 11)}),
            "row 50 of table 'w' is wanted twice");
  EXPECT_EQ(message({Want(40, 11), Want(50, 10)}),
            "row 50 of table 'w' is wanted twice");
  EXPECT_EQ(message({Want(7, 1), Want(7, 1)}),
            "row 7 of table 'w' is wanted twice");
  EXPECT_TRUE(
      PlanDense(chain, {Want(40, 10), Want(50, 10), Want(30, 10), Want(45, 0)})
          .ok());
}

TEST(RestorePlanTest, ARowThatIsInNoCheckpointIsNamed) {
  const Chain chain = ChainOf(100, {{Rows(0, 10)}, {Rows(11, 89)}});
  EXPECT_EQ(PlanDense(chain, {Want(0, 100)}).status().message(),
            "row 10 of table 'w' is in no checkpoint of the chain");
  EXPECT_TRUE(PlanDense(chain, {Want(0, 10), Want(11, 89)}).ok());
}

// Tests the maximum number of parts in a footer. Each part has every second
// row. A quadratic algorithm would take minutes.
TEST(RestorePlanTest, AHostileFooterCostsTimeByItsSize) {
  constexpr uint64_t kParts = 230000;
  std::vector<Part> parts;
  parts.reserve(kParts);
  for (uint64_t i = 0; i < kParts; ++i) parts.push_back(Rows(2 * i, 1));
  const Chain chain = ChainOf(2 * kParts, {parts, {Rows(0, 2 * kParts)}});
  const auto plan = PlanDense(chain, {Want(0, 2 * kParts)});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->size(), kParts + 1);
  EXPECT_EQ(plan->at({1, 0, 0}).size(), kParts);
}

}  // namespace
}  // namespace penstock::ps::checkpoint
