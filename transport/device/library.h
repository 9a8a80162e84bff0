// Opens CUDA's driver at run time.

#ifndef PENSTOCK_TRANSPORT_DEVICE_LIBRARY_H_
#define PENSTOCK_TRANSPORT_DEVICE_LIBRARY_H_

#include "absl/status/statusor.h"
#include "transport/device/api.h"

namespace penstock {
namespace device {

// Returns the process's driver, libcuda.so.1, opened and initialised on first
// use and never closed. Returns the same result each time. Returns NOT_FOUND on
// a machine without the driver or without a device, UNIMPLEMENTED for a driver
// that is too old, and the driver's error if it does not start. Each error
// names the remedy. Thread-safe.
absl::StatusOr<Api*> OpenLibrary();

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_LIBRARY_H_
