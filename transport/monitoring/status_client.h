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

// The questions, and the prefix of an answer; see status_socket.h.
constexpr absl::string_view kAskMetrics = "metrics";
constexpr absl::string_view kAskConnections = "connections";
constexpr absl::string_view kAnswerPrefix = "penstock-status 1 ";

// Asks a process one of these questions. `process` is the pid as this process
// sees it. Returns metrics as text, or a line of JSON for each connection, as
// docs/operations.md describes. Texts may come from a peer. Waits for at most
// `limit`.
//
// Errors:
// - NOT_FOUND: nobody answers for the process. The process has had no
//   connection over Penstock yet, has its status socket turned off, has ended,
//   or is in another network namespace.
// - PERMISSION_DENIED: the process is another user's, or other processes have
//   taken all its names.
// - UNAVAILABLE: the process closed the connection before the end of an answer,
//   because eight other clients are asking it, or because it is ending.
// - DEADLINE_EXCEEDED: the process does not answer, for example because it is
//   stopped.
absl::StatusOr<std::string> AskProcess(pid_t process,
                                       absl::string_view question,
                                       absl::Duration limit);

struct StatusOwner {
  // The pid as this process sees it. 0 if the owner is in a pid namespace that
  // this process cannot see.
  pid_t process;
  uid_t uid;
};
// Returns the owner of the listener at the status socket `name`. Asks no
// question, and does not wait. Fails if nobody listens, or if too many clients
// wait to be accepted.
absl::StatusOr<StatusOwner> OwnerOfStatusSocket(absl::string_view name);

// The number of names for the status socket of one process. A process uses the
// first free name: "penstock-status-4711", then "penstock-status-4711.1" and so
// on. Several names are needed because a process in another pid namespace may
// have the same pid, and because anybody may take a name. `process` is the pid
// that the process itself sees.
constexpr int kStatusNames = 8;
std::string StatusSocketName(pid_t process, int name = 0);
// Writes the socket's address, an abstract name, to `address`. Returns the size
// of the address.
unsigned StatusAddress(pid_t process, sockaddr_un* address, int name = 0);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_STATUS_CLIENT_H_
