#include "penstock/metrics.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "transport/monitoring/added.h"
#include "transport/monitoring/exposition.h"
#include "transport/monitoring/http_port.h"
#include "transport/settings/http_address.h"

namespace penstock {

absl::StatusOr<int> ServeMetrics(const std::string& address) {
  const absl::optional<HttpAddress> parsed = HttpAddress::Parse(address);
  if (!parsed.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address,
                     "\" is not an address: use [HOST:]PORT, such as "
                     "\"9464\" or \"0.0.0.0:9464\""));
  }
  return monitoring::ServeHttp(*parsed);
}

std::string MetricsText() { return monitoring::MetricsAsText(); }

std::shared_ptr<void> AddMetrics(
    std::function<std::vector<MetricFamily>()> collect) {
  return monitoring::Add(std::move(collect));
}

}  // namespace penstock
