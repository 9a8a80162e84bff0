// What NVIDIA's driver says of the GPUs here.

#ifndef PENSTOCK_CLI_DOCTOR_CUDA_H_
#define PENSTOCK_CLI_DOCTOR_CUDA_H_

#include "absl/status/statusor.h"

namespace penstock::cli {

struct Cuda {
  int version = 0;  // of the driver's API: 12040 is 12.4
  int devices = 0;
  // Whether every device can be read and written by other devices: through the
  // module nvidia_peermem, or as a DMA-BUF.
  bool has_gpudirect = false;
  bool has_dma_buf = false;
};

// Opens libcuda at run time. Returns NOT_FOUND where there is none, and another
// error if the driver does not answer.
absl::StatusOr<Cuda> LookAtCuda();

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_DOCTOR_CUDA_H_
