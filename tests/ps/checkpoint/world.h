// The state of parameter servers as plain maps. Tests write a world to
// checkpoints, and compare the restored state with it.

#ifndef PENSTOCK_TESTS_PS_CHECKPOINT_WORLD_H_
#define PENSTOCK_TESTS_PS_CHECKPOINT_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "ps/checkpoint/repository.h"
#include "ps/checkpoint/restore.h"

namespace penstock::ps::checkpoint {

class World {
 public:
  // Makes a model of dense and sparse tables of several types. The names are
  // invalid as file names. Table "large" has `large_rows` rows of 7 floats and
  // two slots.
  explicit World(unsigned seed = 1, int64_t large_rows = 40);

  const Model& model() const { return model_; }

  // Changes some tables at random: changes, removes and adds some rows.
  void Change();
  // Changes only the scalar among the dense tables.
  void ChangeLittle();

  // Writes a checkpoint as `servers` servers do. With a base, writes only the
  // changes since Clean().
  absl::Status Write(Files* files, Repository* repository, uint64_t step,
                     size_t servers,
                     absl::optional<uint64_t> base = absl::nullopt) const;
  // Writes one server's shard.
  absl::StatusOr<ShardInfo> WriteShard(Files* files, const Attempt& attempt,
                                       size_t server, size_t servers,
                                       bool only_changed) const;
  NewCheckpoint Describe(uint64_t step, size_t servers,
                         absl::optional<uint64_t> base) const;
  // Marks the present state as the base of the next incremental checkpoint.
  void Clean();

  // Returns the world that `servers` servers together restore from `chain`. The
  // servers' model has the same tables in another order. Fails if an element is
  // missing or is restored twice, or if two servers get the same row.
  static absl::StatusOr<World> Read(Files* files, const Chain& chain,
                                    size_t servers);

  std::vector<WorkerClock> clocks() const;

  bool operator==(const World& other) const {
    return dense_ == other.dense_ && sparse_ == other.sparse_;
  }

 private:
  friend class WorldSink;
  struct Empty {};
  explicit World(Empty) {}

  using Row = std::tuple<uint64_t, uint64_t, std::string>;
  struct Dense {
    uint64_t step = 0;
    std::vector<std::string> streams;
    bool operator==(const Dense& other) const {
      return step == other.step && streams == other.streams;
    }
  };
  std::string RandomBytes(size_t size);
  void ChangeDense(size_t table);
  void ChangeSparse(size_t table);
  absl::Status WriteDense(ShardWriter* writer, size_t table, size_t server,
                          size_t servers) const;
  absl::Status WriteSparse(ShardWriter* writer, size_t table, size_t server,
                           size_t servers, bool only_changed) const;

  std::mt19937_64 random_;
  Model model_;
  std::map<std::string, Dense> dense_;
  std::map<std::string, std::map<uint64_t, Row>> sparse_;
  std::map<std::string, std::set<uint64_t>> changed_;  // or removed
  std::set<std::string> changed_dense_;
};

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_TESTS_PS_CHECKPOINT_WORLD_H_
