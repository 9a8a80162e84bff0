// Merges repeated ids within a request. A client pulls each row once. Gradients
// of one id are summed.

#ifndef PENSTOCK_PS_SPARSE_DEDUPLICATE_H_
#define PENSTOCK_PS_SPARSE_DEDUPLICATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "ps/sparse/hash.h"

namespace penstock::ps::sparse {

struct Unique {
  std::vector<uint64_t> ids;     // the distinct ids, by first occurrence
  std::vector<uint32_t> row_of;  // by input id: its index in `ids`
};

// Finds the distinct ids, at most 2^31. Takes expected linear time even for
// hostile ids, if their author does not know `hash`.
Unique FindUnique(absl::Span<const uint64_t> ids, const HashKey& hash);

// Sums the rows of each id, in input order, so that the same input gives the
// same bits. Each row has `dim` floats. `sums` has `dim` floats for each unique
// id.
void SumRows(const Unique& unique, absl::Span<const float> rows, size_t dim,
             absl::Span<float> sums);

// The unique ids of several lists, and the position of each list's ids among
// them.
struct UniqueOfLists {
  std::unique_ptr<uint64_t[]> ids;  // `count` of them
  size_t count = 0;
  std::unique_ptr<uint32_t[]> row_of;  // by input id
};
// Finds the distinct ids of concatenated lists, as FindUnique() does. Returns
// nullopt if memory cannot be allocated.
absl::optional<UniqueOfLists> FindUniqueOfLists(
    absl::Span<const absl::Span<const uint64_t>> lists, const HashKey& hash);

// Adds the rows of one list, as SumRows() does. `row_of` belongs to that list.
// `seen` is the number of unique ids in the earlier lists. Returns the number
// including this list.
size_t AddRows(absl::Span<const uint32_t> row_of, absl::Span<const float> rows,
               size_t dim, size_t seen, absl::Span<float> sums);

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_DEDUPLICATE_H_
