// Starts what shows a process to those who watch it: the port of metrics, the
// status socket and the trace, as the environment says.
#ifndef PENSTOCK_TRANSPORT_START_MONITORING_H_
#define PENSTOCK_TRANSPORT_START_MONITORING_H_

namespace penstock {

// Does so at its first call in the process. Any thread. What cannot be started
// is logged, and the program goes on without it.
void StartMonitoringOnce();

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_START_MONITORING_H_
