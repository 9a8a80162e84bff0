// Rows outside of a table: what a checkpoint writes and reads.

#ifndef PENSTOCK_PS_SPARSE_ROW_BLOCK_H_
#define PENSTOCK_PS_SPARSE_ROW_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::ps::sparse {

// Row i is ids[i], values[i * dim] and so on. `slots` has all slots of a row,
// one after the other, dim floats each. Filled again and again, it keeps its
// memory.
struct RowBlock {
  std::vector<uint64_t> removed;  // comes before the rows: an id may be in both
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
