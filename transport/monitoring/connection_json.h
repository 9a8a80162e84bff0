// Converts connections to JSON and back, for the status socket. Each connection
// is a line.

#ifndef PENSTOCK_TRANSPORT_MONITORING_CONNECTION_JSON_H_
#define PENSTOCK_TRANSPORT_MONITORING_CONNECTION_JSON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/metrics/connection_info.h"

namespace penstock {
namespace monitoring {

// Returns printable ASCII, whatever the texts contain.
std::string ToJson(const std::vector<metrics::ConnectionInfo>& connections);

// Parses lines that another process may have written, even one of another
// release. A missing member, or one of another type, becomes 0 or empty.
// Unknown members are ignored, as are histograms with other buckets. Returns
// INVALID_ARGUMENT for a line that is not a JSON object, and for an unknown
// role. Does not check texts.
absl::StatusOr<std::vector<metrics::ConnectionInfo>> FromJson(
    absl::string_view lines);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_CONNECTION_JSON_H_
