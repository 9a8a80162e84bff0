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

// Returns printable ASCII, for any content of the texts.
std::string ToJson(const std::vector<metrics::ConnectionInfo>& connections);

// Parses lines written by another process, perhaps of another release. A
// missing member, or a member of another type, becomes 0 or empty. Ignores
// unknown members, and histograms with other buckets. Returns INVALID_ARGUMENT
// for a line that is not a JSON object, and for an unknown role. Does not check
// texts.
absl::StatusOr<std::vector<metrics::ConnectionInfo>> FromJson(
    absl::string_view lines);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_CONNECTION_JSON_H_
