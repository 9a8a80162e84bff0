// The arguments of a kernel, for the host's compiler and for CUDA's.

#ifndef PENSTOCK_TRANSPORT_DEVICE_KERNELS_ARGUMENTS_H_
#define PENSTOCK_TRANSPORT_DEVICE_KERNELS_ARGUMENTS_H_

#include <cstdint>

namespace penstock::device::kernels {

// Limits the number of arrays in one sum. Machines usually have up to eight
// devices. The input addresses are part of the arguments, so that kernels read
// no addresses from memory.
inline constexpr uint32_t kMaxFanIn = 8;

// The number of bytes that a thread loads or stores in one access: the widest
// access that devices have.
inline constexpr uint32_t kVectorBytes = 16;

// The number of threads of each block. With 256, blocks fill a multiprocessor
// of any architecture.
inline constexpr uint32_t kThreadsPerBlock = 256;

// The only parameter of each kernel, passed by value. PlanLaunch() makes the
// arguments, and the kernel does not check them.
struct Arguments {
  const void* inputs[kMaxFanIn];  // the first fan_in of them
  void* output;
  uint64_t count;    // elements of each input, and of the output
  uint64_t head;     // elements before the first vector
  uint64_t vectors;  // of kVectorBytes each, aligned in all arrays
  uint32_t fan_in;
  float scale;
};
static_assert(sizeof(Arguments) == 104, "the layout has holes");

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TRANSPORT_DEVICE_KERNELS_ARGUMENTS_H_
