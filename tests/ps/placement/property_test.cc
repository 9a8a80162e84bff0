// Tests the maps of random tables, servers and moves. A model stores the server
// of each single row and shard.
//
// property_test [--seeds=N] [--first=S] runs more seeds, or repeats one.

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ps/placement/hash.h"
#include "ps/placement/placement_map.h"
#include "ps/placement/split.h"
#include "ps/placement/wire.h"
#include "tests/ps/placement/rows.h"
#include "tests/ps/seeds.h"

namespace penstock::ps {
namespace {

constexpr uint64_t kSeeds = 1000;

// The server of each row of a dense table, or of each shard of a sparse table.
// The key is the table's name.
using Model = std::map<std::string, std::vector<uint32_t>>;

class Program {
 public:
  explicit Program(uint64_t seed) : dice_(seed) {}

  void Run() {
    MakeTables();
    CheckMade();
    for (int i = 0; i < 15 && !testing::Test::HasFailure(); ++i) Change();
  }

 private:
  uint64_t Draw(uint64_t bound) { return dice_() % bound; }

  void MakeTables() {
    const size_t tables = Draw(12);
    for (size_t i = 0; i < tables; ++i) {
      const std::string name = absl::StrCat("t", dice_() % 1000, "_", i);
      if (Draw(3) == 0) {
        layouts_.push_back(SparseLayout(name, 4 * Draw(20)));
      } else {
        layouts_.push_back({name, TableLayout::Kind::kDense, Draw(60),
                            Draw(10) == 0 ? 0 : 1 + Draw(50)});
      }
    }
    const size_t servers = 1 + Draw(7);
    for (size_t i = 0; i < servers; ++i) {
      servers_.push_back(absl::StrCat("s", i));
    }
    options_.split_bytes = 1 + Draw(500);
    map_ = *PlacementMap::Make(layouts_, servers_, options_);
  }

  void CheckMade() {
    std::vector<TableLayout> shuffled = layouts_;
    std::shuffle(shuffled.begin(), shuffled.end(), dice_);
    Expect(*PlacementMap::Make(shuffled, servers_, options_), map_);
    uint64_t largest = 0;
    std::vector<uint64_t> bytes(servers_.size(), 0);
    std::vector<int> shards(servers_.size(), 0);
    for (const PlacedTable& table : map_.tables()) {
      std::vector<uint32_t>& model = model_[table.layout.name];
      for (const RowRange& range : table.ranges) {
        const uint64_t part = range.rows * table.layout.row_bytes;
        largest = std::max(largest, part);
        bytes[range.server] += part;
        if (range.rows > 1 && table.ranges.size() < servers_.size()) {
          EXPECT_LE(part, options_.split_bytes);
        }
        model.insert(model.end(), range.rows, range.server);
      }
      for (uint32_t server : table.shard_servers) {
        ++shards[server];
        model.push_back(server);
      }
    }
    const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
    EXPECT_LE(*most - *least, largest);
    const auto [few, many] = std::minmax_element(shards.begin(), shards.end());
    EXPECT_LE(*many - *few, 1);
    EXPECT_EQ(map_.tables().size(), layouts_.size());
    Check();
  }

  // Moves rows or a shard of a table to another server in the model, and makes
  // the map of the next epoch from the model.
  void Change() {
    if (layouts_.empty()) return;
    std::vector<uint32_t>& model = model_[layouts_[Draw(layouts_.size())].name];
    if (!model.empty()) {
      const size_t first = Draw(model.size());
      const size_t count = 1 + Draw(model.size() - first);
      std::fill_n(model.begin() + static_cast<std::ptrdiff_t>(first), count,
                  static_cast<uint32_t>(Draw(servers_.size())));
    }
    std::vector<PlacedTable> tables;
    for (const auto& [name, servers] : model_) {
      tables.push_back({map_.Find(name)->layout, {}, {}});
      Place(servers, &tables.back());
    }
    absl::StatusOr<PlacementMap> next =
        PlacementMap::FromParts(map_.epoch() + 1, servers_, std::move(tables));
    ASSERT_TRUE(next.ok()) << next.status();
    map_ = *std::move(next);
    Check();
  }

  // Puts each row or shard of `table` on its server of `servers`.
  static void Place(const std::vector<uint32_t>& servers, PlacedTable* table) {
    if (table->layout.kind == TableLayout::Kind::kSparse) {
      table->shard_servers = servers;
      return;
    }
    std::vector<RowRange>& ranges = table->ranges;
    if (servers.empty()) ranges = {{0, 0, 0}};
    for (uint64_t row = 0; row < servers.size(); ++row) {
      if (row > 0 && servers[row] == servers[row - 1]) {
        ++ranges.back().rows;
      } else {
        ranges.push_back({row, 1, servers[row]});
      }
    }
  }

  void Check() {
    for (const auto& [name, servers] : model_) {
      const PlacedTable* table = map_.Find(name);
      ASSERT_NE(table, nullptr);
      if (table->layout.kind == TableLayout::Kind::kSparse) {
        EXPECT_EQ(table->shard_servers, servers);
        CheckSplit(*table);
        continue;
      }
      for (size_t row = 0; row < servers.size(); ++row) {
        ASSERT_EQ(ServerOfRow(*table, row), servers[row]);
      }
      for (size_t i = 1; i < table->ranges.size(); ++i) {
        EXPECT_NE(table->ranges[i - 1].server, table->ranges[i].server);
      }
    }
    for (uint32_t server = 0; server < map_.servers().size(); ++server) {
      EXPECT_EQ(DenseBytesOn(map_, server), BytesInModel(server));
    }
    const std::string bytes = ToMessage(map_).SerializeAsString();
    v1::PlacementMap message;
    ASSERT_TRUE(message.ParseFromString(bytes));
    absl::StatusOr<PlacementMap> back = FromMessage(message);
    ASSERT_TRUE(back.ok()) << back.status();
    Expect(*back, map_);
  }

  uint64_t BytesInModel(uint32_t server) {
    uint64_t bytes = 0;
    for (const TableLayout& layout : layouts_) {
      if (layout.kind != TableLayout::Kind::kDense) continue;
      const std::vector<uint32_t>& rows = model_[layout.name];
      bytes += layout.row_bytes * static_cast<uint64_t>(std::count(
                                      rows.begin(), rows.end(), server));
    }
    return bytes;
  }

  void CheckSplit(const PlacedTable& table) {
    std::vector<uint64_t> ids(Draw(100));
    for (uint64_t& id : ids) id = dice_() >> Draw(64);
    const SplitIds split = Split(table, ids, map_.servers().size());
    std::vector<uint32_t> expected;
    for (uint32_t server = 0; server < map_.servers().size(); ++server) {
      std::vector<uint32_t> part;
      for (uint32_t i = 0; i < ids.size(); ++i) {
        const std::vector<uint32_t>& shards = model_[table.layout.name];
        const uint32_t shard =
            ShardOf(ids[i], static_cast<uint32_t>(shards.size()));
        if (shards[shard] == server) part.push_back(i);
      }
      const auto of = split.Of(server);
      EXPECT_EQ(std::vector<uint32_t>(of.begin(), of.end()), part);
    }
  }

  static void Expect(const PlacementMap& a, const PlacementMap& b) {
    EXPECT_EQ(ToMessage(a).SerializeAsString(),
              ToMessage(b).SerializeAsString());
  }

  std::mt19937_64 dice_;
  std::vector<TableLayout> layouts_;
  std::vector<std::string> servers_;
  PlacementMap::Options options_;
  PlacementMap map_ = *PlacementMap::FromParts(1, {"none"}, {});
  Model model_;
};

TEST(PlacementProperties, AgreeWithTheModel) {
  RunEachSeed([](uint64_t seed) { Program(seed).Run(); });
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, penstock::ps::kSeeds);
}
