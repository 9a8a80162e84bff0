// Which server holds which part of which table.

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

// What matters of a table for its placement.
struct TableLayout {
  enum class Kind { kDense, kSparse };

  std::string name;  // 1 to PlacementMap::kMaxNameBytes bytes
  Kind kind = Kind::kDense;
  uint64_t rows = 0;       // of a dense table
  uint64_t row_bytes = 0;  // of a row's value
};

// Returns the layout of a dense table. A row is a value of the outermost
// dimension; a scalar has one. Returns INVALID_ARGUMENT as ByteSize() does.
absl::StatusOr<TableLayout> DenseLayout(std::string name, tensor::DType dtype,
                                        const tensor::Shape& shape);
// The same of a sparse table, with rows of `row_bytes` bytes.
TableLayout SparseLayout(std::string name, uint64_t row_bytes);

struct RowRange {
  uint64_t first = 0;
  uint64_t rows = 0;
  uint32_t server = 0;  // its place in PlacementMap::servers()
};

struct PlacedTable {
  TableLayout layout;
  std::vector<RowRange> ranges;         // of a dense one, in order
  std::vector<uint32_t> shard_servers;  // of a sparse one

  // Return the server of a row, which the dense table must have, or of an id.
  uint32_t ServerOfRow(uint64_t row) const;
  uint32_t ServerOfId(uint64_t id) const;
};

// Immutable. What changes it returns the next one, whose epoch is higher by
// one. Two maps of the same epoch in one run are the same.
class PlacementMap {
 public:
  static constexpr size_t kMaxServers = 4096;
  static constexpr size_t kMaxTables = 65536;
  // Ranges and shards of all tables together.
  static constexpr size_t kMaxParts = size_t{1} << 20;
  static constexpr size_t kMaxShards = 65536;  // of one table
  static constexpr size_t kMaxNameBytes = 1024;
  static constexpr size_t kMaxAddressBytes = 512;
  // Of a table that is made here. Far more than servers, so that they can be
  // dealt evenly, and again when a server is added.
  static constexpr uint32_t kShards = 256;

  struct Options {
    // A dense table with more bytes is split, into parts of at most so many
    // bytes, but into no more parts than there are servers or rows. Large
    // enough that a part is worth a message of its own.
    uint64_t split_bytes = uint64_t{4} << 20;
  };

  // Makes the map of epoch 1. Balances the bytes of dense tables: takes tables
  // by the size of their parts, the largest first, and gives the parts to the
  // servers that have the fewest bytes so far, the larger part to the emptier
  // server. With one part each this is "longest processing time first" (R. L.
  // Graham, 1969). The fullest and the emptiest server differ by at most the
  // largest part. Shards of sparse tables are dealt out one by one, from table
  // to table.
  //
  // Depends on the set of tables, not on their order: tables of one size go by
  // name, and of servers with the same load the first is taken. Returns
  // INVALID_ARGUMENT as FromParts() does.
  static absl::StatusOr<PlacementMap> Make(absl::Span<const TableLayout> tables,
                                           std::vector<std::string> servers,
                                           const Options& options);

  // Makes a map of parts that may be a peer's. Returns INVALID_ARGUMENT, which
  // names the table and what is wrong, unless there are 1 to kMaxServers
  // servers with different addresses, tables are in order of different names,
  // each row and each shard has exactly one server that there is, and all is
  // within bounds.
  static absl::StatusOr<PlacementMap> FromParts(
      uint64_t epoch, std::vector<std::string> servers,
      std::vector<PlacedTable> tables);

  uint64_t epoch() const { return epoch_; }
  const std::vector<std::string>& servers() const { return servers_; }
  const std::vector<PlacedTable>& tables() const { return tables_; }

  // Returns null if there is no such table. Valid as long as the map.
  const PlacedTable* Find(absl::string_view table) const;
  // Returns the bytes of dense values at a server.
  uint64_t DenseBytesOn(uint32_t server) const;

  // Returns OK if `epoch` is this map's. Otherwise returns FAILED_PRECONDITION,
  // whose message says which side has to fetch the newer map.
  absl::Status CheckEpoch(uint64_t epoch) const;

  // The next map, in which rows of a dense table, or a shard of a sparse one,
  // are at server `to`; in which there is one more server, with nothing; in
  // which a server has another address. What moves the data is the caller's.
  // Return NOT_FOUND for a table that is not there, INVALID_ARGUMENT for one of
  // the other kind and for what is out of bounds.
  absl::StatusOr<PlacementMap> MoveRows(absl::string_view table, uint64_t first,
                                        uint64_t rows, uint32_t to) const;
  absl::StatusOr<PlacementMap> MoveShard(absl::string_view table,
                                         uint32_t shard, uint32_t to) const;
  absl::StatusOr<PlacementMap> AddServer(std::string address) const;
  absl::StatusOr<PlacementMap> ReplaceServer(uint32_t server,
                                             std::string address) const;

 private:
  PlacementMap() = default;

  absl::StatusOr<PlacedTable*> FindForMove(absl::string_view table,
                                           TableLayout::Kind kind, uint32_t to);
  absl::StatusOr<PlacementMap> Next() const;

  uint64_t epoch_ = 1;
  std::vector<std::string> servers_;
  std::vector<PlacedTable> tables_;  // by name
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_PLACEMENT_PLACEMENT_MAP_H_
