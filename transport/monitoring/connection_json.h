// What a process says of its connections at its status socket: a line of JSON
// for each.

#ifndef PENSTOCK_TRANSPORT_MONITORING_CONNECTION_JSON_H_
#define PENSTOCK_TRANSPORT_MONITORING_CONNECTION_JSON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/metrics/connection_info.h"

namespace penstock {
namespace monitoring {

// Returns printable ASCII, whatever is in the texts.
std::string ToJson(const std::vector<metrics::ConnectionInfo>& connections);

// Parses it, as another process, of another release, may have written it: what
// is missing or of another type is 0 or empty, what is unknown is left out, and
// so is a histogram with other buckets. INVALID_ARGUMENT for a line that is no
// JSON object, and for a role that there is not. Texts may hold anything.
absl::StatusOr<std::vector<metrics::ConnectionInfo>> FromJson(
    absl::string_view lines);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_CONNECTION_JSON_H_
