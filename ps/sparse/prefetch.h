// Fetches a line into the cache ahead of its use.

#ifndef PENSTOCK_PS_SPARSE_PREFETCH_H_
#define PENSTOCK_PS_SPARSE_PREFETCH_H_

namespace penstock::ps::sparse {

// GCC takes a function that only prefetches for one without effect, and leaves
// out the calls of it (version 12). The empty statement is an effect.
inline void FetchLine(const void* line) {
  __builtin_prefetch(line);
  asm volatile("");
}

// The same for a line that will be written.
inline void FetchLineToWrite(const void* line) {
  __builtin_prefetch(line, 1);
  asm volatile("");
}

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_PREFETCH_H_
