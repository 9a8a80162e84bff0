// Messages in the memory of GPUs, for programs that read slices themselves; see
// docs/gpu.md. Most programs want tensor_service, which uses this.

#ifndef PENSTOCK_DEVICE_SLICES_H_
#define PENSTOCK_DEVICE_SLICES_H_

#include <string>

namespace penstock {

// Allows messages to this process's servers to stay where they are received,
// for all calls whose path begins with `prefix` ("/package.Service/"). Slices
// may then be in memory of devices, including the peer's devices. Without this
// call all slices are on the host.
//
// Handlers must not let the CPU read a slice that is not on the host. Copy
// slices in the peer's memory, or release them soon.
//
// Does nothing in a process that has not named its devices. tensor_service
// names them, in programs built in this tree and in programs of the package
// python3-penstock.
//
// Applies to calls that begin later, and cannot be undone. Thread-safe.
//
// For a single call of a client, use Destinations (destinations.h) instead.
void AcceptDeviceSlices(const std::string& prefix);

}  // namespace penstock

#endif  // PENSTOCK_DEVICE_SLICES_H_
