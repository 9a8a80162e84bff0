#include "penstock/device_slices.h"

#include <string>

#include "transport/grpc/filters/accepted_paths.h"

namespace penstock {

void AcceptDeviceSlices(const std::string& prefix) {
  core::AcceptDeviceSlices(prefix);
}

}  // namespace penstock
