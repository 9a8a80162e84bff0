// Opens CUDA's driver at run time.

#ifndef PENSTOCK_TRANSPORT_DEVICE_LIBRARY_H_
#define PENSTOCK_TRANSPORT_DEVICE_LIBRARY_H_

#include "absl/status/statusor.h"
#include "transport/device/api.h"

namespace penstock {
namespace device {

// Returns the process's driver, libcuda.so.1, opened and initialised on first
// use and never closed. Returns the same each time: NOT_FOUND on a machine
// without the driver or without a device, UNIMPLEMENTED for one that is too
// old, and what the driver says where it does not start; each names what to do.
// Thread-safe.
absl::StatusOr<Api*> OpenLibrary();

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_LIBRARY_H_
