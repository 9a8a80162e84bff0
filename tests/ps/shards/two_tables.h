// A model of two tables, and pushes to them.

#ifndef PENSTOCK_TESTS_PS_SHARDS_TWO_TABLES_H_
#define PENSTOCK_TESTS_PS_SHARDS_TWO_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ps/shards/shards.h"
#include "tests/ps/server/small_server.h"
#include "tests/ps/server/small_training.h"
#include "tests/ps/shards/cluster.h"

namespace penstock::ps {

inline constexpr size_t kWorkers = 3;
inline constexpr size_t kShards = 2;

// Two tables, one at each shard. The learning rate is 1.
inline Model TwoTables(int64_t staleness) {
  Model model;
  model.tables = {DenseTable("a", {kWorkers}, staleness),
                  DenseTable("b", {kWorkers}, staleness)};
  return model;
}

// Returns the name of each shard's table.
inline std::vector<std::string> PartsOf(const Cluster& cluster) {
  std::vector<std::string> parts;
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    const auto training = cluster.PrimaryOf(shard)->own().training();
    parts.push_back(training->tables->parts().front().name);
  }
  return parts;
}

// Adds 1 to the element of the rank, in the table of `shard`.
inline void PushOne(Cluster* cluster, const std::vector<std::string>& parts,
                    uint32_t shard, uint32_t rank, uint64_t clock) {
  std::vector<float> gradient(kWorkers);
  gradient[rank] = -1;
  tensor::Bundle bundle;
  bundle.tensors.push_back(Floats(parts[shard], {kWorkers}, gradient));
  const auto verdict = cluster->Push(shard, {rank, 100 + rank}, clock, bundle);
  ASSERT_TRUE(verdict.ok()) << verdict.status();
}

// Makes rank r push r + 1 times to each shard.
inline void PushClocks(Cluster* cluster) {
  const std::vector<std::string> parts = PartsOf(*cluster);
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    for (uint32_t rank = 0; rank < kWorkers; ++rank) {
      ASSERT_TRUE(cluster->Join(shard, {rank, 100 + rank}).ok());
      for (uint64_t clock = 0; clock <= rank; ++clock) {
        ASSERT_NO_FATAL_FAILURE(PushOne(cluster, parts, shard, rank, clock));
      }
    }
  }
}

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SHARDS_TWO_TABLES_H_
