// Answers other processes of this machine about metrics and connections.

#ifndef PENSTOCK_TRANSPORT_MONITORING_STATUS_SOCKET_H_
#define PENSTOCK_TRANSPORT_MONITORING_STATUS_SOCKET_H_

namespace penstock {
namespace monitoring {

// Answers at an abstract UNIX socket, "penstock-status-PID" or another name
// that StatusSocketName() tells, from the first connection of this process on;
// so a process without any has no more descriptors and threads than before.
// Answers processes of the same user and root's, 8 at a time, each for at most
// 5 s. EventLoop::Get() carries bytes, and the thread of Aside::kStatus
// collects, so that nobody else waits. Closes sockets aside, since anybody can
// connect, with descriptors in the socket that take for ever to close. The
// child of a fork answers nothing of its parent's, and for itself from its own
// first connection on. Thread-safe.
//
//   question         answer
//   metrics\n        metrics in Prometheus' text format
//   connections\n    a line of JSON for each connection, 10,000 at most
//   anything else    nothing: the connection is closed
//
// An answer begins with "penstock-status 1 BYTES\n", where BYTES is how many
// follow; then the connection ends. AskProcess() reads that.
void ServeStatusFromFirstConnection();

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_STATUS_SOCKET_H_
