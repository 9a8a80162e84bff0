// Maps parts of tables to servers.

#ifndef PENSTOCK_PS_PLACEMENT_PLACEMENT_MAP_H_
#define PENSTOCK_PS_PLACEMENT_PLACEMENT_MAP_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// The properties of a table that its placement depends on.
struct TableLayout {
  enum class Kind { kDense, kSparse };

  std::string name;  // 1 to PlacementMap::kMaxNameBytes bytes
  Kind kind = Kind::kDense;
  uint64_t rows = 0;       // dense tables only
  uint64_t row_bytes = 0;  // of a row's value
};

// Returns the layout of a dense table. A row is a value of the outermost
// dimension; a scalar has one row. Returns INVALID_ARGUMENT as ByteSize() does.
absl::StatusOr<TableLayout> DenseLayout(std::string name, tensor::DType dtype,
                                        const tensor::Shape& shape);
// Returns the layout of a sparse table with rows of `row_bytes` bytes.
TableLayout SparseLayout(std::string name, uint64_t row_bytes);

struct RowRange {
  uint64_t first = 0;
  uint64_t rows = 0;
  uint32_t server = 0;  // index in PlacementMap::servers()
};

struct PlacedTable {
  TableLayout layout;
  std::vector<RowRange> ranges;         // dense tables, in order
  std::vector<uint32_t> shard_servers;  // sparse tables, by shard

  // Returns the server that has an id of a sparse table.
  uint32_t ServerOfId(uint64_t id) const;
};

// An immutable map. Two maps of the same epoch in one run are equal.
class PlacementMap {
 public:
  static constexpr size_t kMaxServers = 4096;
  static constexpr size_t kMaxTables = 65536;
  // Limits the ranges and shards of all tables together.
  static constexpr size_t kMaxParts = size_t{1} << 20;
  static constexpr size_t kMaxShards = 65536;  // of one table
  static constexpr size_t kMaxNameBytes = 1024;
  static constexpr size_t kMaxAddressBytes = 512;
  // The number of shards of a new table. Much larger than the number of
  // servers, so that shards can be spread evenly.
  static constexpr uint32_t kShards = 256;

  struct Options {
    // The size in bytes above which a dense table is split into parts of at
    // most this size. A table never has more parts than servers or rows, so
    // parts may be larger. Large enough that the cost of a separate message per
    // part is small.
    uint64_t split_bytes = uint64_t{4} << 20;
  };

  // Makes the map of epoch 1. Balances the bytes of dense tables: places tables
  // in descending order of the size of their parts, and gives each part to the
  // server with the fewest bytes so far. With one part per table, this is
  // "longest processing time first" (R. L. Graham, 1969). The fullest and the
  // emptiest server differ by at most the largest part. Shards of sparse tables
  // are dealt out round robin, across tables.
  //
  // The result does not depend on the order of `tables`: names break ties
  // between tables, and indices break ties between servers. Returns
  // INVALID_ARGUMENT as FromParts() does.
  static absl::StatusOr<PlacementMap> Make(absl::Span<const TableLayout> tables,
                                           std::vector<std::string> servers,
                                           const Options& options);

  // Makes a map of untrusted parts. Returns INVALID_ARGUMENT, naming the table
  // and the flaw, unless
  //
  // - there are 1 to kMaxServers servers with different addresses,
  // - tables are sorted by name, without repeats,
  // - each row and each shard has exactly one existing server, and
  // - all limits hold.
  static absl::StatusOr<PlacementMap> FromParts(
      uint64_t epoch, std::vector<std::string> servers,
      std::vector<PlacedTable> tables);

  uint64_t epoch() const { return epoch_; }
  const std::vector<std::string>& servers() const { return servers_; }
  const std::vector<PlacedTable>& tables() const { return tables_; }

  // Returns the placement of the table, or null. Valid as long as the map.
  const PlacedTable* Find(absl::string_view table) const;

  // Returns OK if `epoch` is the epoch of this map. Otherwise returns
  // FAILED_PRECONDITION. The message says which side has to fetch the newer
  // map.
  absl::Status CheckEpoch(uint64_t epoch) const;

 private:
  PlacementMap() = default;

  uint64_t epoch_ = 1;
  std::vector<std::string> servers_;
  std::vector<PlacedTable> tables_;  // sorted by name
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_PLACEMENT_PLACEMENT_MAP_H_
