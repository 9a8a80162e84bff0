// Converts results of CUDA's driver to statuses.

#ifndef PENSTOCK_TRANSPORT_DEVICE_STATUS_H_
#define PENSTOCK_TRANSPORT_DEVICE_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "transport/device/api.h"

namespace penstock {
namespace device {

// Returns "<operation>: CUDA_ERROR_...", with the remedy if there is one.
// `operation` begins with a verb and names its object: "copy 8 bytes from
// cuda:0".
absl::Status CallFailed(Api* api, abi::Result result,
                        absl::string_view operation);

// Returns true if every later call for this device, in this process, will
// return the same error.
bool IsSticky(abi::Result result);

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_STATUS_H_
