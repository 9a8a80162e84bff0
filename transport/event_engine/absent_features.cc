// Implements the public functions that have no effect with gRPC 1.60 and later.
// Programs that call them still compile and link.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "penstock/device_slices.h"
#include "penstock/metrics.h"
#include "penstock/record.h"

namespace penstock {
namespace {

absl::Status Absent(absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat(
      "no ", what, " with gRPC 1.60 or later; see docs/current_grpc.md"));
}

}  // namespace

void AcceptDeviceSlices(const std::string&) {}

absl::Status RecordCalls(const std::string&) { return Absent("recordings"); }
void FinishRecording() {}

absl::StatusOr<int> ServeMetrics(const std::string&) {
  return Absent("metrics");
}
std::string MetricsText() { return ""; }
std::shared_ptr<void> AddMetrics(std::function<std::vector<MetricFamily>()>) {
  return nullptr;
}

}  // namespace penstock
