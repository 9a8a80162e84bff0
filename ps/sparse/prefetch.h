// Prefetches cache lines.

#ifndef PENSTOCK_PS_SPARSE_PREFETCH_H_
#define PENSTOCK_PS_SPARSE_PREFETCH_H_

namespace penstock::ps::sparse {

// Prefetches a cache line for reading. The empty assembler statement is needed
// because GCC 12 considers a function that only prefetches to have no effect,
// and drops its calls.
inline void FetchLine(const void* line) {
  __builtin_prefetch(line);
  asm volatile("");
}

// Prefetches a cache line for writing.
inline void FetchLineToWrite(const void* line) {
  __builtin_prefetch(line, 1);
  asm volatile("");
}

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_PREFETCH_H_
