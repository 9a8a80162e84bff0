// The features that kernels need from nvcc and its host compiler: see
// repositories.bzl.

#include <cstdint>

__global__ void Probe(const __grid_constant__ uint64_t value) {
  if constexpr (sizeof(value) != 8) __trap();
}
