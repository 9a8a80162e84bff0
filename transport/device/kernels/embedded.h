// Declares the symbols that cuda_fatbin() of third_party/cuda defines.

#ifndef PENSTOCK_TRANSPORT_DEVICE_KERNELS_EMBEDDED_H_
#define PENSTOCK_TRANSPORT_DEVICE_KERNELS_EMBEDDED_H_

#include <cstddef>

extern const unsigned char kReduceFatbin[];
extern const size_t kReduceFatbinSize;  // 0: there are no kernels
extern const char kReduceArchitectures[];

#endif  // PENSTOCK_TRANSPORT_DEVICE_KERNELS_EMBEDDED_H_
