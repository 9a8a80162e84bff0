// Answers other processes of this machine about metrics and connections.

#ifndef PENSTOCK_TRANSPORT_MONITORING_STATUS_SOCKET_H_
#define PENSTOCK_TRANSPORT_MONITORING_STATUS_SOCKET_H_

namespace penstock {
namespace monitoring {

// Serves this process's status from its first connection on, at an abstract
// UNIX socket: "penstock-status-PID" or another name of StatusSocketName(). A
// process without connections therefore spends no descriptors or threads on the
// status.
//
// Serves processes of the same user and of root, 8 at a time, each for at most
// 5 s. The thread of EventLoop::Get() sends the bytes, and the thread of
// Aside::kStatus collects them, so that no other thread waits. Closes sockets
// on another thread, because a client can leave descriptors in the socket whose
// closing never ends. The child of a fork serves only its own status, from its
// own first connection on. Thread-safe.
//
//   question         answer
//   metrics\n        metrics in Prometheus' text format
//   connections\n    a line of JSON for each connection, 10,000 at most
//   anything else    nothing: the connection is closed
//
// An answer begins with the line "penstock-status 1 BYTES", where BYTES is the
// number of bytes after the line. Then the connection ends. AskProcess() reads
// the answer.
void ServeStatusFromFirstConnection();

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_STATUS_SOCKET_H_
