// Makes writes of network devices to a device's memory visible.

#ifndef PENSTOCK_TRANSPORT_DEVICE_REMOTE_WRITES_H_
#define PENSTOCK_TRANSPORT_DEVICE_REMOTE_WRITES_H_

#include "absl/status/status.h"
#include "transport/device/device.h"

namespace penstock {
namespace device {

// Makes earlier writes of network devices visible to the device's own work, and
// to copies. The CPU must have seen the completion of the writes. Calls the
// driver only if the device does not order the writes itself. Returns
// FAILED_PRECONDITION, with a reason for people, if the writes cannot be made
// visible.
absl::Status FlushRemoteWrites(Device* device);

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_REMOTE_WRITES_H_
