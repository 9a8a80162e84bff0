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

// Returns what `process` answers to one of these questions: metrics as text, or
// a line of JSON for each connection, both as docs/operations.md says. Texts in
// it may be a peer's. `process` is the pid that this process sees. Waits for at
// most `limit`.
//
// NOT_FOUND: nobody answers for that process: it has had no connection over
// Penstock yet, is told not to answer, has ended, or is in another network
// namespace. PERMISSION_DENIED: it is another user's, or others have taken all
// its names. UNAVAILABLE: it closed the connection without an answer, or in the
// midst of one, as when eight others ask it, or it ends. DEADLINE_EXCEEDED: it
// does not answer, as when it is stopped.
absl::StatusOr<std::string> AskProcess(pid_t process,
                                       absl::string_view question,
                                       absl::Duration limit);

// A process has the first of its names that is free: "penstock-status-4711",
// then "penstock-status-4711.1" and so on. Those of another pid namespace may
// have the same pid in the same network namespace, and anybody may take a name.
// `process` is the pid that the process itself sees.
constexpr int kStatusNames = 8;
std::string StatusSocketName(pid_t process, int name = 0);
// Its address, in the space of abstract names. Returns the size.
unsigned StatusAddress(pid_t process, sockaddr_un* address, int name = 0);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_STATUS_CLIENT_H_
