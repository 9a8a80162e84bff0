#include "ps/server/local_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/ps/seeds.h"

namespace penstock::ps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TableSpec Dense(const std::string& name, tensor::Shape shape,
                int64_t staleness = 0) {
  TableSpec table;
  table.name = name;
  table.rows = DenseSpec{tensor::DType::kF32, std::move(shape)};
  table.staleness = staleness;
  return table;
}

TableSpec Sparse(const std::string& name, uint32_t dim, int64_t staleness = 0) {
  TableSpec table;
  table.name = name;
  SparseSpec rows;
  rows.dim = dim;
  table.rows = rows;
  table.staleness = staleness;
  return table;
}

PlacementMap Place(const Model& model, size_t servers, uint64_t split_bytes) {
  std::vector<TableLayout> layouts;
  for (const TableSpec& table : model.tables) {
    layouts.push_back(*LayoutOf(table));
  }
  std::vector<std::string> addresses;
  for (size_t i = 0; i < servers; ++i) {
    addresses.push_back(absl::StrCat("ps", i, ":2222"));
  }
  PlacementMap::Options options;
  options.split_bytes = split_bytes;
  return *PlacementMap::Make(layouts, addresses, options);
}

TEST(LocalModelTest, HasTheRangesThatAreItsOwn) {
  const Model model = {
      {Dense("kernel", {100, 10}), Dense("bias", {}), Sparse("words", 4)}};
  const PlacementMap placement = Place(model, 2, /*split_bytes=*/2000);
  std::set<std::string> names;
  for (uint32_t server = 0; server < 2; ++server) {
    const auto local = LocalModel::Create(model, placement, server);
    ASSERT_TRUE(local.ok()) << local.status();
    for (const LocalRange& range : local->ranges()) names.insert(range.name);
    EXPECT_EQ(local->rows().size(), 1u);
    EXPECT_EQ(local->policies().size(), 1u);
  }
  EXPECT_THAT(names, ElementsAre("bias", "kernel[0:50]", "kernel[50:100]"));
}

// Tests each dense row and each sparse table with random placements.
TEST(LocalModelTest, ServersTogetherHaveAllOnce) {
  RunEachSeed([](uint64_t seed) {
    std::mt19937 random(seed);
    Model model;
    for (int i = 0; i < 5; ++i) {
      model.tables.push_back(Dense(absl::StrCat("d", i),
                                   {static_cast<int64_t>(random() % 50),
                                    static_cast<int64_t>(1 + random() % 4)},
                                   random() % 3));
    }
    const size_t servers = 1 + random() % 4;
    const PlacementMap placement = Place(model, servers, 1 + random() % 200);
    std::vector<std::multiset<uint64_t>> rows(model.tables.size());
    for (uint32_t server = 0; server < servers; ++server) {
      const auto local = LocalModel::Create(model, placement, server);
      ASSERT_TRUE(local.ok()) << local.status();
      for (const LocalRange& range : local->ranges()) {
        for (int64_t i = 0; i < range.shape[0]; ++i) {
          rows[range.table].insert(range.first_row + i);
        }
        EXPECT_EQ(local->policies()[range.policy].staleness,
                  model.tables[range.table].staleness);
      }
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto& dense = absl::get<DenseSpec>(model.tables[i].rows);
      ASSERT_EQ(rows[i].size(), static_cast<size_t>(dense.shape[0]));
      ASSERT_EQ(std::set<uint64_t>(rows[i].begin(), rows[i].end()).size(),
                rows[i].size());
    }
  });
}

TEST(LocalModelTest, TablesOfOneRuleShareAPolicy) {
  const Model model = {
      {Dense("a", {3}), Dense("b", {3}, 4), Sparse("c", 4, 4), Sparse("d", 4)}};
  const auto local = LocalModel::Create(model, Place(model, 1, 1 << 20), 0);
  ASSERT_TRUE(local.ok()) << local.status();
  ASSERT_EQ(local->policies().size(), 2u);
  EXPECT_EQ(local->ranges()[0].policy, local->rows()[1].policy);
  EXPECT_EQ(local->ranges()[1].policy, local->rows()[0].policy);
}

TEST(LocalModelTest, AServerWithNothingHasTheClockOfTheOthers) {
  for (const int64_t staleness : {int64_t{0}, int64_t{4}}) {
    const Model model = {{Dense("a", {3}, staleness)}};
    const auto local = LocalModel::Create(model, Place(model, 2, 1 << 20), 1);
    ASSERT_TRUE(local.ok()) << local.status();
    EXPECT_TRUE(local->ranges().empty());
    ASSERT_EQ(local->policies().size(), 1u);
    EXPECT_EQ(local->policies()[0].staleness, staleness);
  }
  const Model empty;
  const auto local = LocalModel::Create(empty, Place(empty, 2, 1 << 20), 1);
  ASSERT_TRUE(local.ok()) << local.status();
  EXPECT_EQ(local->policies().size(), 1u);
}

TEST(LocalModelTest, SaysWhatIsNotHere) {
  const Model model = {{Dense("a", {3}), Sparse("b", 4)}};
  const auto local = LocalModel::Create(model, Place(model, 1, 1 << 20), 0);
  ASSERT_TRUE(local.ok()) << local.status();
  EXPECT_THAT(std::string(local->FindRows("x").status().message()),
              HasSubstr("table x: the model has no such table"));
  EXPECT_THAT(std::string(local->FindRows("a").status().message()),
              HasSubstr("it is dense"));
  EXPECT_EQ(local->FindRows("b").value(), 0u);
}

TEST(LocalModelTest, RefusesThePlacementOfAnotherModel) {
  const Model model = {{Dense("a", {3}), Sparse("b", 4)}};
  const PlacementMap placement = Place(model, 1, 1 << 20);
  const auto message = [&](const Model& other, uint32_t server) {
    const auto local = LocalModel::Create(other, placement, server);
    EXPECT_EQ(local.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(local.status().message());
  };
  EXPECT_THAT(message(model, 1), HasSubstr("no server 1 among 1"));
  EXPECT_THAT(message({{Dense("a", {3})}}, 0), HasSubstr("2 tables"));
  EXPECT_THAT(message({{Dense("a", {4}), Sparse("b", 4)}}, 0),
              HasSubstr("table a: the placement is of another model"));
  EXPECT_THAT(message({{Dense("a", {3}), Sparse("c", 4)}}, 0),
              HasSubstr("table c: the placement is of another model"));
  EXPECT_THAT(message({{Dense("a", {3}), Dense("b", {4})}}, 0),
              HasSubstr("table b"));
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, /*count=*/200);
}
