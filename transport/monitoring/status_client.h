// Asks another process of this machine for its metrics and connections.

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

// The questions, and what an answer begins with; see status_socket.h.
constexpr absl::string_view kAskMetrics = "metrics";
constexpr absl::string_view kAskConnections = "connections";
constexpr absl::string_view kAnswerPrefix = "penstock-status 1 ";

// Asks `process`, by the pid that this process sees, one of these questions.
// Returns metrics as text, or a line of JSON for each connection, as
// docs/operations.md describes them. Their texts may be a peer's. Waits for at
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

struct StatusOwner {
  pid_t
      process;  // as this process sees it; 0: in a pid namespace beside its own
  uid_t uid;
};
// Returns who listens at the status socket `name`. Asks nothing, and does not
// wait: returns an error if nobody listens, or too many wait to be accepted.
absl::StatusOr<StatusOwner> OwnerOfStatusSocket(absl::string_view name);

// A process has the first of its names that is free: "penstock-status-4711",
// then "penstock-status-4711.1" and so on. Those of another pid namespace may
// have the same pid in the same network namespace, and anybody may take a name.
// `process` is the pid that the process itself sees.
constexpr int kStatusNames = 8;
std::string StatusSocketName(pid_t process, int name = 0);
// Writes that socket's address, an abstract name. Returns the address's size.
unsigned StatusAddress(pid_t process, sockaddr_un* address, int name = 0);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_STATUS_CLIENT_H_
