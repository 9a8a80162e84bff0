#include "ps/placement/placement_map.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/ps/placement/rows.h"

namespace penstock::ps {
namespace {

using tensor::DType;

constexpr PlacementMap::Options kSplitAt100{100};

TableLayout Dense(std::string name, uint64_t rows, uint64_t row_bytes) {
  return {std::move(name), TableLayout::Kind::kDense, rows, row_bytes};
}

std::vector<std::string> Servers(size_t count) {
  std::vector<std::string> servers;
  for (size_t i = 0; i < count; ++i) {
    servers.push_back("server" + std::to_string(i) + ":1");
  }
  return servers;
}

PlacementMap Make(std::vector<TableLayout> tables, size_t servers) {
  auto map = PlacementMap::Make(tables, Servers(servers), kSplitAt100);
  EXPECT_TRUE(map.ok()) << map.status();
  return *map;
}

PlacedTable Placed(TableLayout layout, std::vector<RowRange> ranges) {
  return {std::move(layout), std::move(ranges), {}};
}

bool Says(const absl::Status& status, absl::StatusCode code,
          const std::string& what) {
  return status.code() == code &&
         status.message().find(what) != absl::string_view::npos;
}

bool IsInvalid(const absl::Status& status, const std::string& what) {
  return Says(status, absl::StatusCode::kInvalidArgument, what);
}

TEST(TableLayoutTest, RowIsAValueOfTheOutermostDimension) {
  const TableLayout matrix = *DenseLayout("m", DType::kF32, {6, 5, 2});
  EXPECT_EQ(matrix.rows, 6u);
  EXPECT_EQ(matrix.row_bytes, 40u);
  const TableLayout scalar = *DenseLayout("s", DType::kF64, {});
  EXPECT_EQ(scalar.rows, 1u);
  EXPECT_EQ(scalar.row_bytes, 8u);
  EXPECT_EQ(DenseLayout("e", DType::kF32, {0, 7})->rows, 0u);
  EXPECT_EQ(DenseLayout("z", DType::kF32, {7, 0})->row_bytes, 0u);
  EXPECT_TRUE(
      IsInvalid(DenseLayout("neg", DType::kF32, {-1}).status(), "'neg'"));
}

TEST(PlacementMapTest, SmallTablesGoLargestFirstToTheEmptiestServer) {
  const PlacementMap map = Make({Dense("a", 1, 40), Dense("b", 1, 90),
                                 Dense("c", 1, 60), Dense("d", 1, 20)},
                                2);
  EXPECT_EQ(map.epoch(), 1u);
  EXPECT_EQ(ServerOfRow(*map.Find("b"), 0), 0u);
  EXPECT_EQ(ServerOfRow(*map.Find("c"), 0), 1u);
  EXPECT_EQ(ServerOfRow(*map.Find("a"), 0), 1u);
  EXPECT_EQ(ServerOfRow(*map.Find("d"), 0), 0u);
  EXPECT_EQ(DenseBytesOn(map, 0), 110u);
  EXPECT_EQ(DenseBytesOn(map, 1), 100u);
}

// Tests larger tables, which would overflow the byte count of a server.
TEST(PlacementMapTest, AllTablesTogetherHaveLessThan63BitsOfBytes) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  const auto of = [](uint64_t more) {
    return PlacementMap::FromParts(
        1, Servers(1),
        {Placed(Dense("a", kMost - 10, 1), {{0, kMost - 10, 0}}),
         Placed(Dense("b", more, 1), {{0, more, 0}})});
  };
  ASSERT_TRUE(of(10).ok());
  EXPECT_EQ(DenseBytesOn(*of(10), 0), kMost);
  EXPECT_TRUE(IsInvalid(of(11).status(), "'b': with it, all have more bytes"));
  EXPECT_TRUE(IsInvalid(of(kMost).status(), "'b': with it"));
}

TEST(PlacementMapTest, LargeTablesAreSplitByRows) {
  const PlacementMap map = Make({Dense("w", 25, 10)}, 4);
  const PlacedTable& table = *map.Find("w");
  ASSERT_EQ(table.ranges.size(), 3u);  // each of at most 100 bytes
  EXPECT_EQ(table.ranges[0].rows, 9u);
  EXPECT_EQ(table.ranges[1].rows, 8u);
  EXPECT_EQ(table.ranges[2].first, 17u);
  EXPECT_EQ(ServerOfRow(table, 8), 0u);
  EXPECT_EQ(ServerOfRow(table, 9), 1u);
  EXPECT_EQ(ServerOfRow(table, 24), 2u);
}

TEST(PlacementMapTest, ATableAtTheThresholdIsNotSplit) {
  EXPECT_EQ(Make({Dense("w", 10, 10)}, 4).Find("w")->ranges.size(), 1u);
  EXPECT_EQ(Make({Dense("w", 11, 10)}, 4).Find("w")->ranges.size(), 2u);
}

TEST(PlacementMapTest, NoMorePartsThanServersOrRows) {
  EXPECT_EQ(Make({Dense("w", 1000, 10)}, 3).Find("w")->ranges.size(), 3u);
  EXPECT_EQ(Make({Dense("w", 2, 1000)}, 3).Find("w")->ranges.size(), 2u);
}

TEST(PlacementMapTest, ATableWithoutBytesHasAServer) {
  const PlacementMap map = Make({Dense("none", 0, 4), Dense("thin", 9, 0)}, 2);
  ASSERT_EQ(map.Find("none")->ranges.size(), 1u);
  EXPECT_EQ(map.Find("none")->ranges[0].rows, 0u);
  ASSERT_EQ(map.Find("thin")->ranges.size(), 1u);
  EXPECT_EQ(map.Find("thin")->ranges[0].rows, 9u);
}

TEST(PlacementMapTest, ShardsAreDealtOnFromTableToTable) {
  const PlacementMap map =
      Make({SparseLayout("s", 64), SparseLayout("t", 64), Dense("d", 1, 1)}, 3);
  std::vector<int> shards(3, 0);
  for (const char* name : {"s", "t"}) {
    ASSERT_EQ(map.Find(name)->shard_servers.size(), PlacementMap::kShards);
    for (uint32_t server : map.Find(name)->shard_servers) ++shards[server];
  }
  EXPECT_EQ(shards, (std::vector<int>{171, 171, 170}));
}

TEST(PlacementMapTest, FindsWhatIsThereOnly) {
  const PlacementMap map = Make({Dense("b", 1, 1), Dense("d", 1, 1)}, 1);
  EXPECT_EQ(map.Find("b")->layout.name, "b");
  for (const char* name : {"", "a", "c", "e", "bb"}) {
    EXPECT_EQ(map.Find(name), nullptr) << name;
  }
}

TEST(PlacementMapTest, BadDefinitionsAreNamed) {
  auto error = [](std::vector<TableLayout> tables, size_t servers,
                  PlacementMap::Options options = kSplitAt100) {
    return PlacementMap::Make(tables, Servers(servers), options).status();
  };
  EXPECT_TRUE(IsInvalid(error({}, 0), "0 servers"));
  EXPECT_TRUE(IsInvalid(error({}, PlacementMap::kMaxServers + 1), "servers"));
  EXPECT_TRUE(IsInvalid(error({}, 1, {0}), "split_bytes"));
  EXPECT_TRUE(IsInvalid(error({Dense("", 1, 1)}, 1), "0 bytes"));
  EXPECT_TRUE(IsInvalid(
      error({Dense(std::string(PlacementMap::kMaxNameBytes + 1, 'x'), 1, 1)},
            1),
      "1025 bytes"));
  EXPECT_TRUE(IsInvalid(error({Dense("x", 1, 1), Dense("x", 2, 1)}, 1), "'x'"));
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
  EXPECT_TRUE(IsInvalid(error({Dense("x", kHuge, 1)}, 1), "'x'"));
  EXPECT_TRUE(IsInvalid(error({Dense("x", kHuge / 3, 9)}, 1), "'x'"));
  EXPECT_TRUE(
      IsInvalid(error({Dense("x", kHuge / 4, 1), Dense("y", kHuge / 4, 1),
                       Dense("z", kHuge / 4, 1)},
                      1),
                "'z'"));
  EXPECT_TRUE(IsInvalid(error({SparseLayout("x", kHuge)}, 1), "'x'"));
  TableLayout sparse = SparseLayout("x", 4);
  sparse.rows = 1;
  EXPECT_TRUE(IsInvalid(error({sparse}, 1), "'x'"));
}

TEST(PlacementMapTest, TooManyPartsAreRefusedBeforeTheyAreMade) {
  std::vector<TableLayout> tables;
  for (size_t i = 0; i <= PlacementMap::kMaxParts / PlacementMap::kShards;
       ++i) {
    tables.push_back(SparseLayout("t" + std::to_string(i), 4));
  }
  EXPECT_TRUE(IsInvalid(
      PlacementMap::Make(tables, Servers(1), kSplitAt100).status(), "parts"));
  tables.pop_back();
  EXPECT_TRUE(PlacementMap::Make(tables, Servers(1), kSplitAt100).ok());
}

TEST(PlacementMapTest, BadServersAreNamed) {
  auto error = [](std::vector<std::string> servers) {
    return PlacementMap::FromParts(1, std::move(servers), {}).status();
  };
  EXPECT_TRUE(IsInvalid(error({}), "0 servers"));
  EXPECT_TRUE(IsInvalid(error({"a", ""}), "0 bytes"));
  EXPECT_TRUE(IsInvalid(error({"a", "b\n", "b\n"}), "'b\\n'"));
  EXPECT_TRUE(
      IsInvalid(error({std::string(PlacementMap::kMaxAddressBytes + 1, 'x')}),
                "513 bytes"));
  EXPECT_TRUE(error({"a", "b"}).ok());
}

TEST(PlacementMapTest, RangesThatAreNotOneWholeAreRefused) {
  struct Case {
    const char* what;
    std::vector<RowRange> ranges;
    const char* says;
  };
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
  const Case cases[] = {
      {"none", {}, "no ranges"},
      {"missing at the front", {{1, 9, 0}}, "not at 0"},
      {"missing between", {{0, 4, 0}, {5, 5, 1}}, "not at 4"},
      {"missing at the end", {{0, 4, 0}, {4, 5, 1}}, "rows from 9 on"},
      {"overlapping", {{0, 6, 0}, {5, 5, 1}}, "not at 6"},
      {"unordered", {{5, 5, 1}, {0, 5, 0}}, "not at 0"},
      {"too many rows", {{0, 11, 0}}, "11 rows, of 10"},
      {"huge", {{0, kHuge, 0}}, "rows, of 10"},
      {"huge behind", {{0, 5, 0}, {5, kHuge - 2, 1}}, "rows, of 10"},
      {"empty", {{0, 10, 0}, {10, 0, 1}}, "empty"},
      {"empty between", {{0, 5, 0}, {5, 0, 1}, {5, 5, 0}}, "empty"},
      {"one in two", {{0, 5, 0}, {5, 5, 0}}, "are one"},
      {"unknown server", {{0, 5, 0}, {5, 5, 2}}, "server 2 of 2"},
  };
  for (const Case& each : cases) {
    const auto map = PlacementMap::FromParts(
        1, Servers(2), {Placed(Dense("tab", 10, 4), each.ranges)});
    EXPECT_TRUE(IsInvalid(map.status(), "'tab'")) << each.what;
    EXPECT_TRUE(IsInvalid(map.status(), each.says))
        << each.what << ": " << map.status();
  }
  EXPECT_TRUE(
      PlacementMap::FromParts(
          1, Servers(2), {Placed(Dense("tab", 10, 4), {{0, 5, 0}, {5, 5, 1}})})
          .ok());
  EXPECT_TRUE(IsInvalid(
      PlacementMap::FromParts(
          1, Servers(2), {Placed(Dense("tab", 0, 4), {{0, 0, 0}, {0, 0, 1}})})
          .status(),
      "are one"));
}

TEST(PlacementMapTest, ShardsThatAreNotRightAreRefused) {
  auto error = [](PlacedTable table) {
    return PlacementMap::FromParts(1, Servers(2), {std::move(table)}).status();
  };
  const TableLayout layout = SparseLayout("tab", 4);
  EXPECT_TRUE(IsInvalid(error({layout, {}, {}}), "0 shards"));
  EXPECT_TRUE(IsInvalid(error({layout, {}, {0, 1, 2}}), "shard 2"));
  EXPECT_TRUE(IsInvalid(error({layout, {{0, 1, 0}}, {0}}), "ranges"));
  EXPECT_TRUE(IsInvalid(
      error({layout, {}, std::vector<uint32_t>(PlacementMap::kMaxShards + 1)}),
      "65537 shards"));
  EXPECT_TRUE(
      IsInvalid(error({Dense("tab", 1, 1), {{0, 1, 0}}, {0}}), "has shards"));
  EXPECT_TRUE(error({layout, {}, {0}}).ok());
}

TEST(PlacementMapTest, TablesOutOfOrderOrTwiceAreRefused) {
  const PlacedTable a = Placed(Dense("a", 1, 1), {{0, 1, 0}});
  const PlacedTable b = Placed(Dense("b", 1, 1), {{0, 1, 0}});
  EXPECT_TRUE(PlacementMap::FromParts(1, Servers(1), {a, b}).ok());
  EXPECT_TRUE(IsInvalid(PlacementMap::FromParts(1, Servers(1), {b, a}).status(),
                        "'a'"));
  EXPECT_TRUE(IsInvalid(PlacementMap::FromParts(1, Servers(1), {a, a}).status(),
                        "'a'"));
  EXPECT_TRUE(
      IsInvalid(PlacementMap::FromParts(0, Servers(1), {}).status(), "epoch"));
}

TEST(PlacementMapTest, NamesInMessagesAreShortAndPrintable) {
  const std::string name = "\x01\n" + std::string(500, 'n');
  const auto map =
      PlacementMap::FromParts(1, Servers(1), {Placed(Dense(name, 1, 1), {})});
  EXPECT_TRUE(IsInvalid(map.status(), "'\\x01\\n"));
  EXPECT_LT(map.status().message().size(), 200u);
}

TEST(PlacementMapTest, StaleRequestsAreRefused) {
  const PlacementMap map = *PlacementMap::FromParts(2, Servers(1), {});
  EXPECT_EQ(map.epoch(), 2u);
  EXPECT_TRUE(map.CheckEpoch(2).ok());
  constexpr auto kCode = absl::StatusCode::kFailedPrecondition;
  EXPECT_TRUE(Says(map.CheckEpoch(1), kCode, "fetch the map"));
  EXPECT_TRUE(Says(map.CheckEpoch(3), kCode, "behind"));
}

}  // namespace
}  // namespace penstock::ps
