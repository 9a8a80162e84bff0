// Measures the memory's bandwidth by the triad of STREAM (McCalpin), a = b + x
// c.

#ifndef PENSTOCK_BENCH_PS_TRIAD_H_
#define PENSTOCK_BENCH_PS_TRIAD_H_

#include <cstddef>

namespace penstock::bench {

// Computes the triad. Arrays must be aligned to 64 bytes and have a multiple of
// 16 elements. StreamedTriad() bypasses the caches when writing, and so does
// not read the target.
void Triad(const float* b, const float* c, float x, float* a, size_t count);
void StreamedTriad(const float* b, const float* c, float x, float* a,
                   size_t count);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_PS_TRIAD_H_
