// A function that spreads a difference in a few bits over all bits.

#ifndef PENSTOCK_PS_RANDOM_MIX_H_
#define PENSTOCK_PS_RANDOM_MIX_H_

#include <cstdint>

namespace penstock::ps {

// Returns a value that depends on all bits of `x`, by the finalizer of
// SplitMix64 (G. Steele et al., "Fast Splittable Pseudorandom Number
// Generators", OOPSLA 2014). Not keyed.
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_RANDOM_MIX_H_
