// The methods whose messages may come to lie in the memory of devices.

#ifndef PENSTOCK_TRANSPORT_GRPC_ACCEPTED_PATHS_H_
#define PENSTOCK_TRANSPORT_GRPC_ACCEPTED_PATHS_H_

#include "absl/strings/string_view.h"

namespace penstock {
namespace core {

// See penstock::AcceptDeviceSlices(). Thread-safe.
void AcceptDeviceSlices(absl::string_view prefix);
// Returns true if calls with this path may carry device slices.
bool AcceptsDeviceSlices(absl::string_view path);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_ACCEPTED_PATHS_H_
