// Asks another process how it is.

#ifndef PENSTOCK_TRANSPORT_MONITORING_STATUS_CLIENT_H_
#define PENSTOCK_TRANSPORT_MONITORING_STATUS_CLIENT_H_

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

struct sockaddr_un;

namespace penstock {
namespace monitoring {

// See status_socket.h.
constexpr absl::string_view kAskMetrics = "metrics";
constexpr absl::string_view kAskConnections = "connections";
constexpr absl::string_view kAnswerPrefix = "penstock-status 1 ";

// Returns what `process` answers to one of these questions. Waits for at most
// `limit`. NOT_FOUND: nobody answers for that process: it has had no connection
// over Penstock yet, is told not to answer, has ended, or is in another network
// namespace. PERMISSION_DENIED: another process has its place, or it is another
// user's. DEADLINE_EXCEEDED, UNAVAILABLE: it did not answer, or not to its end.
absl::StatusOr<std::string> AskProcess(pid_t process,
                                       absl::string_view question,
                                       absl::Duration limit);

// "penstock-status-4711".
std::string StatusSocketName(pid_t process);
// Its address, in the space of abstract names. Returns the size.
unsigned StatusAddress(pid_t process, sockaddr_un* address);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_STATUS_CLIENT_H_
