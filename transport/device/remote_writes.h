// What network devices have written to a device's memory.

#ifndef PENSTOCK_TRANSPORT_DEVICE_REMOTE_WRITES_H_
#define PENSTOCK_TRANSPORT_DEVICE_REMOTE_WRITES_H_

#include "absl/status/status.h"
#include "transport/device/device.h"

namespace penstock {
namespace device {

// Makes visible to the device's own work, and to copies, what network devices
// have written before: the CPU has seen that it is complete. Asks the driver
// only where the device does not order that by itself. Returns
// FAILED_PRECONDITION, for people, if nothing makes it visible.
absl::Status FlushRemoteWrites(Device* device);

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_REMOTE_WRITES_H_
