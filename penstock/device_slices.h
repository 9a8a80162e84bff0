// Messages in the memory of GPUs, for those who read slices themselves;
// docs/gpu.md. Most programs want tensor_service, which uses this.

#ifndef PENSTOCK_DEVICE_SLICES_H_
#define PENSTOCK_DEVICE_SLICES_H_

#include <string>

namespace penstock {

// Has messages to this process's servers lie where they are received, perhaps
// in memory of devices, also of the peer's, for all calls whose path begins
// with `prefix`: "/package.Service/". Else all slices are on the host. The
// handlers must not have the CPU read a slice that is not. Such memory stays
// the peer's: copy it, or drop it soon.
//
// Does nothing in a process that has not named its devices, which
// tensor_service does: a program built in this tree, or one of the package
// python3-penstock.
//
// Holds for calls that begin later, and cannot be undone. Thread-safe.
//
// A client says the same of one call by Destinations (destinations.h).
void AcceptDeviceSlices(const std::string& prefix);

}  // namespace penstock

#endif  // PENSTOCK_DEVICE_SLICES_H_
