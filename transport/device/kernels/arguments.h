// What a kernel is started with, for the host's compiler and for CUDA's.

#ifndef PENSTOCK_TRANSPORT_DEVICE_KERNELS_ARGUMENTS_H_
#define PENSTOCK_TRANSPORT_DEVICE_KERNELS_ARGUMENTS_H_

#include <cstdint>

namespace penstock::device::kernels {

// Inputs of one sum. Eight is a machine's usual number of devices; their
// addresses are part of the arguments, so that none are read from memory.
inline constexpr uint32_t kMaxFanIn = 8;

// What a thread loads and stores at once: the widest access that there is.
inline constexpr uint32_t kVectorBytes = 16;

// Of each block: fills a multiprocessor of any of the architectures.
inline constexpr uint32_t kThreadsPerBlock = 256;

// The one parameter of each kernel, by value. Made by PlanLaunch(), and trusted
// by the kernel.
struct Arguments {
  const void* inputs[kMaxFanIn];  // the first fan_in of them
  void* output;
  uint64_t count;    // elements of each input, and of the output
  uint64_t head;     // elements that stand before the first vector
  uint64_t vectors;  // of kVectorBytes each, aligned in all arrays
  uint32_t fan_in;
  float scale;
};
static_assert(sizeof(Arguments) == 104, "the layout has holes");

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TRANSPORT_DEVICE_KERNELS_ARGUMENTS_H_
