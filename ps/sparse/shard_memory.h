// Limits the memory of one shard.

#ifndef PENSTOCK_PS_SPARSE_SHARD_MEMORY_H_
#define PENSTOCK_PS_SPARSE_SHARD_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "ps/sparse/admission.h"
#include "ps/sparse/options.h"
#include "ps/sparse/pool.h"
#include "ps/sparse/removals.h"
#include "ps/sparse/shard_rows.h"

namespace penstock::ps::sparse {

// The memory limit of a shard: a share of the table's budget, or the rest of
// the pool. Rows, candidates and removals grow through this object. The budget
// of a table counts the memory of all candidates and removals from the start,
// because they cannot wait for room later.
//
// Not thread-safe.
class ShardMemory {
 public:
  // Makes the limit. All pointers must outlive this object. `buffer_bytes`
  // counts as used memory.
  ShardMemory(const Options& options, size_t buffer_bytes, ShardRows* rows,
              Admission* admission, Removals* removals);
  // Returns the counted memory to the pool.
  ~ShardMemory();
  ShardMemory(const ShardMemory&) = delete;
  ShardMemory& operator=(const ShardMemory&) = delete;

  // Returns the bytes in use, as in Options::budget_bytes.
  size_t bytes() const;
  // Returns the share of the table's budget for rows and index.
  size_t budget() const { return budget_; }
  // Returns the current limit of the bytes of rows and index.
  size_t Limit();
  // Updates the number of bytes of this shard in the pool.
  void Count();

  // Returns true if `rows` more rows fit in `byte_limit`. Allocates memory for
  // them.
  bool HasRoomFor(size_t rows, size_t byte_limit);
  // Counts a push of `id`. Returns true if the id now gets a row; see
  // Admission::Admit().
  bool Admit(uint64_t id, uint32_t tag);
  void AddRemoval(uint64_t id, uint32_t epoch);

 private:
  const size_t budget_;
  const size_t buffer_bytes_;
  ShardRows* const rows_;
  Admission* const admission_;
  Removals* const removals_;
  Pool* const pool_;    // null: no pool
  size_t counted_ = 0;  // bytes counted in the pool
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_SHARD_MEMORY_H_
