// The methods whose received messages may be in device memory.

#ifndef PENSTOCK_TRANSPORT_GRPC_FILTERS_ACCEPTED_PATHS_H_
#define PENSTOCK_TRANSPORT_GRPC_FILTERS_ACCEPTED_PATHS_H_

#include "absl/strings/string_view.h"

namespace penstock {
namespace core {

// Implements penstock::AcceptDeviceSlices(): accepts device slices in calls
// whose path starts with `prefix`. Thread-safe.
void AcceptDeviceSlices(absl::string_view prefix);
// Returns true if calls with this path may receive device slices. Thread-safe.
bool AcceptsDeviceSlices(absl::string_view path);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_FILTERS_ACCEPTED_PATHS_H_
