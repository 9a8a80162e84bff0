#include "penstock/device_slices.h"

#include "transport/grpc/accepted_paths.h"

namespace penstock {

void AcceptDeviceSlices(absl::string_view prefix) {
  core::AcceptDeviceSlices(prefix);
}

}  // namespace penstock
