// Queries another process of this machine for its metrics and connections.

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

// The questions to a process, and the prefix of an answer; see status_socket.h.
constexpr absl::string_view kAskMetrics = "metrics";
constexpr absl::string_view kAskConnections = "connections";
constexpr absl::string_view kAnswerPrefix = "penstock-status 1 ";

// Sends a process one of these questions. `process` is the pid that the calling
// process sees. Returns metrics as text, or a line of JSON for each connection,
// as docs/operations.md describes. The texts may come from a peer. Waits for at
// most `limit`.
//
// Errors:
// - NOT_FOUND: no status socket of this process exists. Possible reasons: the
//   process has had no connection over Penstock yet, its status socket is
//   turned off, it has ended, or it is in another network namespace.
// - PERMISSION_DENIED: the process belongs to another user, or other processes
//   have taken all its names.
// - UNAVAILABLE: the process closed the connection before the end of an answer,
//   because eight other clients are asking it, or because it is ending.
// - DEADLINE_EXCEEDED: the process does not answer, for example because it is
//   stopped.
absl::StatusOr<std::string> AskProcess(pid_t process,
                                       absl::string_view question,
                                       absl::Duration limit);

struct StatusOwner {
  // The pid that the calling process sees. 0 if the owner is in a pid namespace
  // that the calling process cannot see.
  pid_t process;
  uid_t uid;
};
// Returns the owner of the listener at the status socket `name`. Sends no
// question, and does not wait. Fails if nobody listens, or if too many clients
// wait to be accepted.
absl::StatusOr<StatusOwner> OwnerOfStatusSocket(absl::string_view name);

// The number of names that the status socket of one process may have. A process
// uses the first free name: "penstock-status-4711", then
// "penstock-status-4711.1" and so on. Several names are needed because a
// process in another pid namespace may have the same pid, and because any
// process may take a name. `process` is the process's own pid.
constexpr int kStatusNames = 8;
std::string StatusSocketName(pid_t process, int name = 0);
// Writes the socket's address, an abstract name, to `address`. Returns the size
// of the address.
unsigned StatusAddress(pid_t process, sockaddr_un* address, int name = 0);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_STATUS_CLIENT_H_
