// The source of a table's memory: rows, index, candidates, copies.

#ifndef PENSTOCK_PS_SPARSE_MEMORY_H_
#define PENSTOCK_PS_SPARSE_MEMORY_H_

#include <cstddef>

namespace penstock::ps::sparse {

// An allocator for a table's large blocks of memory. Tests replace it to make
// requests fail. Thread-safe.
class Memory {
 public:
  virtual ~Memory() = default;

  // Returns uninitialized memory aligned to 64 bytes, or null. With `huge`,
  // requests huge pages where `bytes` span a whole huge page. Otherwise the
  // kernel provides small pages on first use.
  virtual void* Allocate(size_t bytes, bool huge) = 0;

  // Frees memory that Allocate() returned for the same `bytes`.
  virtual void Free(void* memory, size_t bytes) = 0;
};

// Returns the process's allocator. Small requests use the heap; large ones use
// mappings, which return to the system immediately when freed.
Memory* SystemMemory();

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_MEMORY_H_
