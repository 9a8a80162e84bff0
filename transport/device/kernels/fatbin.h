// The compiled kernels, as a part of this library.

#ifndef PENSTOCK_TRANSPORT_DEVICE_KERNELS_FATBIN_H_
#define PENSTOCK_TRANSPORT_DEVICE_KERNELS_FATBIN_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace penstock::device::kernels {

// Returns an argument for cuModuleLoadData(): one image with code for each of
// Architectures(), aligned to 16 bytes. The image lives as long as the process.
// Returns UNIMPLEMENTED if the library was built on a machine without CUDA's
// compiler.
absl::StatusOr<absl::Span<const unsigned char>> Fatbin();

// Returns the targets of the code, such as "sm_75 sm_80 compute_80".
// "compute_80" is PTX, from which a driver makes code for devices from sm_80
// on. Returns "" if there are no kernels.
absl::string_view Architectures();

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TRANSPORT_DEVICE_KERNELS_FATBIN_H_
