// Rows of sparse tables by server: what is asked for, what comes, and what is
// pushed.

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

// Ids that are asked for. Each goes once, to the server that has it, and its
// row is given to all places that want it. Not thread-safe.
class RowRequest {
 public:
  // `table` is sparse, with rows of `dim` elements, which come as `dtype`.
  RowRequest(const PlacedTable& table, size_t servers,
             absl::Span<const uint64_t> ids, size_t dim, tensor::DType dtype,
             const sparse::HashKey& hash);

  bool IsFor(uint32_t server) const { return !split_.Of(server).empty(); }
  // Returns int64 [n], for a server that has some.
  absl::StatusOr<tensor::Tensor> IdsFor(uint32_t server) const;

  // Takes a server's rows, [n, dim]. Returns INTERNAL if they are of another
  // type or shape.
  absl::Status Take(uint32_t server, tensor::Tensor rows);
  // Once all rows are there: returns [ids, dim], the row of each id given, in
  // their order. Without a copy, if one server had all and none repeats.
  absl::StatusOr<tensor::Tensor> Rows() const;

 private:
  const size_t dim_;
  const tensor::DType dtype_;
  const sparse::Unique unique_;
  const SplitIds split_;
  std::vector<tensor::Tensor> received_;  // by server
};

// Gradients of rows, as a caller has them: [ids, dim], of f32, f16 or bf16.
struct GradientRows {
  std::string table;
  std::vector<uint64_t> ids;
  tensor::Tensor gradients;
};

// What one server gets of them. No tensor: nothing.
struct RowPush {
  tensor::Tensor ids;
  tensor::Tensor gradients;
};

// Returns what each server gets. Adds up the gradients of ids that repeat, in
// f32. Returns INVALID_ARGUMENT, which names the table, for another type or
// shape.
absl::StatusOr<std::vector<absl::optional<RowPush>>> SplitRows(
    const PlacedTable& table, size_t servers, const GradientRows& rows,
    size_t dim, const sparse::HashKey& hash);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_SPARSE_ROWS_H_
