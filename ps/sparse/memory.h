// Where a table's memory comes from: rows, index, candidates, copies.

#ifndef PENSTOCK_PS_SPARSE_MEMORY_H_
#define PENSTOCK_PS_SPARSE_MEMORY_H_

#include <cstddef>

namespace penstock::ps::sparse {

// Thread-safe. A table asks for nothing large elsewhere, so that a test can let
// each request fail.
class Memory {
 public:
  virtual ~Memory() = default;

  // Returns memory that is aligned to 64 bytes, or null. Its contents are
  // undefined. `huge` asks for huge pages if `bytes` are some of them; without
  // it the kernel gives small pages, as they are touched.
  virtual void* Allocate(size_t bytes, bool huge) = 0;

  // Takes back what Allocate() returned for so many bytes.
  virtual void Free(void* memory, size_t bytes) = 0;
};

// Returns the process's: the heap for small requests, mappings of their own for
// large ones, so that they go back to the system at once.
Memory* SystemMemory();

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_MEMORY_H_
