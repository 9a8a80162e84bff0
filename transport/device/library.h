// Opens CUDA's driver at run time.

#ifndef PENSTOCK_TRANSPORT_DEVICE_LIBRARY_H_
#define PENSTOCK_TRANSPORT_DEVICE_LIBRARY_H_

#include "absl/status/statusor.h"
#include "transport/device/api.h"

namespace penstock {
namespace device {

// Returns the process's driver, libcuda.so.1, opened and initialised on first
// use and never closed. Every call returns the same result. Returns NOT_FOUND
// on a machine without the driver or without a device, and UNIMPLEMENTED if the
// driver is too old. If the driver does not start, returns the driver's error.
// Each error names the remedy. Thread-safe.
absl::StatusOr<Api*> OpenLibrary();

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_LIBRARY_H_
