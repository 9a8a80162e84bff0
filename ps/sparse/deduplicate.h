// Ids that repeat within a request: a client asks for each row once and gives
// it to all that want it; what is pushed for one id is added up.

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
  std::vector<uint64_t> ids;     // each once, in the order of its first
  std::vector<uint32_t> row_of;  // of each id given: its place in `ids`
};

// Takes expected linear time, whatever ids somebody chose who does not know
// `hash`. Up to 2^31 ids.
Unique FindUnique(absl::Span<const uint64_t> ids, const HashKey& hash);

// Adds the rows of each id, dim floats each, in the order in which they stand:
// the same input gives the same bits. `sums` has dim floats for each unique id.
void SumRows(const Unique& unique, absl::Span<const float> rows, size_t dim,
             absl::Span<float> sums);

// FindUnique() of lists that stand one behind the other, in memory that may not
// be there.
struct UniqueOfLists {
  std::unique_ptr<uint64_t[]> ids;  // `count` of them
  size_t count = 0;
  std::unique_ptr<uint32_t[]> row_of;  // of each id given
};
// Returns nullopt if there is no memory.
absl::optional<UniqueOfLists> FindUniqueOfLists(
    absl::Span<const absl::Span<const uint64_t>> lists, const HashKey& hash);

// SumRows() list by list: `row_of` is of the list whose rows these are, and
// `seen` how many unique ids the lists before it have. Returns that with this
// one's.
size_t AddRows(absl::Span<const uint32_t> row_of, absl::Span<const float> rows,
               size_t dim, size_t seen, absl::Span<float> sums);

// Copies each unique row to all places that want it. The reverse of
// FindUnique() for pulls.
void SpreadRows(const Unique& unique, absl::Span<const float> rows, size_t dim,
                absl::Span<float> out);

// Both of the first two: ids, and the sum of each one's gradients.
struct Gradients {
  std::vector<uint64_t> ids;
  std::vector<float> gradients;
};
Gradients Deduplicate(absl::Span<const uint64_t> ids,
                      absl::Span<const float> gradients, size_t dim,
                      const HashKey& hash);

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_DEDUPLICATE_H_
