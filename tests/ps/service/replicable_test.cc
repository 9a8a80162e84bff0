// Tests which models may have replicas.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ps/shards/shards.h"

namespace penstock::ps {
namespace {

using testing::HasSubstr;

Model SparseModel() {
  TableSpec table;
  table.name = "words";
  SparseSpec rows;
  rows.dim = 2;
  table.rows = rows;
  return {{table}};
}

TEST(ReplicableTest, TablesThatDependOnTheirPushesOnlyMayHaveReplicas) {
  Model model = SparseModel();
  EXPECT_TRUE(CheckReplicable(model).ok());
  TableSpec dense;
  dense.name = "kernel";
  dense.rows = DenseSpec{tensor::DType::kF32, {3}};
  model.tables.push_back(dense);
  EXPECT_TRUE(CheckReplicable(model).ok());
}

TEST(ReplicableTest, OptionsThatMakeReplicasDifferAreNamed) {
  const std::vector<std::pair<std::string, std::function<void(SparseSpec*)>>>
      options = {
          {"time_to_live",
           [](SparseSpec* rows) { rows->time_to_live = absl::Seconds(5); }},
          {"max_rows", [](SparseSpec* rows) { rows->max_rows = 10; }},
          {"min_count", [](SparseSpec* rows) { rows->min_count = 2; }},
          {"above_budget",
           [](SparseSpec* rows) {
             rows->above_budget = sparse::AboveBudget::kEvict;
           }},
          {"above_budget",
           [](SparseSpec* rows) {
             rows->above_budget = sparse::AboveBudget::kSpill;
           }},
      };
  for (const auto& [name, set] : options) {
    Model model = SparseModel();
    set(&absl::get<SparseSpec>(model.tables[0].rows));
    const absl::Status status = CheckReplicable(model);
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(status.ToString(), HasSubstr("table words has " + name));
  }
}

}  // namespace
}  // namespace penstock::ps
