// Splits the pulls and pushes of sparse rows by server.

#ifndef PENSTOCK_PS_CLIENT_SPARSE_ROWS_H_
#define PENSTOCK_PS_CLIENT_SPARSE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "ps/placement/placement_map.h"
#include "ps/placement/split.h"
#include "ps/sparse/deduplicate.h"
#include "ps/sparse/hash.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// A request for rows of one table. Sends each id once, to the server of its
// row. Copies the row to all positions that asked for the id. Not thread-safe.
class RowRequest {
 public:
  // Makes a request for rows of `table`, which is sparse. The rows have `dim`
  // elements of type `dtype`.
  RowRequest(const PlacedTable& table, size_t servers,
             absl::Span<const uint64_t> ids, size_t dim, tensor::DType dtype,
             const sparse::HashKey& hash);

  bool IsFor(uint32_t server) const { return !split_.Of(server).empty(); }
  // Returns the ids that a server has, int64 [n]. Call only if IsFor(server).
  absl::StatusOr<tensor::Tensor> IdsFor(uint32_t server) const;

  // Adds a server's rows, [n, dim]. Returns INTERNAL if the rows have another
  // type or shape.
  absl::Status Take(uint32_t server, tensor::Tensor rows);
  // Returns the row of each requested id, [ids, dim], in the order of the ids.
  // Call once all rows have arrived. Copies nothing if one server had all rows
  // and no id repeats.
  absl::StatusOr<tensor::Tensor> Rows() const;

 private:
  const size_t dim_;
  const tensor::DType dtype_;
  const sparse::Unique unique_;
  const SplitIds split_;
  std::vector<tensor::Tensor> received_;  // by server
};

// The gradients of rows that a caller gives: [ids, dim], of f32, f16 or bf16.
struct GradientRows {
  std::string table;
  std::vector<uint64_t> ids;
  tensor::Tensor gradients;
};

// The ids and gradients of rows that go to one server.
struct RowPush {
  tensor::Tensor ids;
  tensor::Tensor gradients;
};

// Returns the gradients for each server; nullopt for a server without rows.
// Adds up the gradients of repeated ids in f32. Returns INVALID_ARGUMENT, which
// names the table, for another type or shape.
absl::StatusOr<std::vector<absl::optional<RowPush>>> SplitRows(
    const PlacedTable& table, size_t servers, const GradientRows& rows,
    size_t dim, const sparse::HashKey& hash);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_SPARSE_ROWS_H_
