// A block of rows, in which a checkpoint writes and reads the rows of a table.

#ifndef PENSTOCK_PS_SPARSE_ROW_BLOCK_H_
#define PENSTOCK_PS_SPARSE_ROW_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::ps::sparse {

// A block of rows. Row i has the id ids[i], and its value starts at values[i *
// dim]. `slots` has all slots of a row, concatenated, with `dim` floats each.
// Clear() retains the memory for reuse.
struct RowBlock {
  // The removed ids. Apply removals before the rows, because an id may be in
  // `removed` and in `ids`.
  std::vector<uint64_t> removed;
  std::vector<uint64_t> ids;
  std::vector<float> values;
  std::vector<float> slots;
  std::vector<uint32_t> last_use;  // seconds, by the caller's clock
  std::vector<uint32_t> updates;

  void Clear() {
    removed.clear();
    ids.clear();
    values.clear();
    slots.clear();
    last_use.clear();
    updates.clear();
  }
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_ROW_BLOCK_H_
