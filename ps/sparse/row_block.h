// Rows outside a table, as a checkpoint writes and reads them.

#ifndef PENSTOCK_PS_SPARSE_ROW_BLOCK_H_
#define PENSTOCK_PS_SPARSE_ROW_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::ps::sparse {

// A block of rows. Row i has the id ids[i] and the value from values[i * dim].
// `slots` has all slots of a row, concatenated, dim floats each. Clear() keeps
// the memory for reuse.
struct RowBlock {
  // The removed ids. Removals come before the rows: an id may be both here and
  // in `ids`.
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
