// The compiled kernels, as a part of this library.

#ifndef PENSTOCK_TRANSPORT_DEVICE_KERNELS_FATBIN_H_
#define PENSTOCK_TRANSPORT_DEVICE_KERNELS_FATBIN_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace penstock::device::kernels {

// Returns what cuModuleLoadData takes: one image with code for each of
// Architectures(). It lives as long as the process, aligned to 16 bytes.
// UNIMPLEMENTED: it was built on a machine without CUDA's compiler.
absl::StatusOr<absl::Span<const unsigned char>> Fatbin();

// Returns for what there is code, such as "sm_75 sm_80 compute_80".
// "compute_80" is PTX, of which a driver makes code for devices from sm_80 on.
// Empty: there are no kernels.
absl::string_view Architectures();

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TRANSPORT_DEVICE_KERNELS_FATBIN_H_
