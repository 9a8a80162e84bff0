// Starts the monitoring of a process: the port of metrics, the status socket
// and the trace, as the environment says.
#ifndef PENSTOCK_TRANSPORT_START_MONITORING_H_
#define PENSTOCK_TRANSPORT_START_MONITORING_H_

namespace penstock {

// Starts monitoring at the first call in the process. Callable on any thread.
// If a part cannot be started, logs the reason, and the program continues
// without that part.
void StartMonitoringOnce();

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_START_MONITORING_H_
