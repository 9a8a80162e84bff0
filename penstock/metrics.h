// Metrics of this process, in Prometheus' format.
//
// Penstock always counts the following: the messages that connections carried,
// and over which path; the reasons for not using a better path; the duration of
// messages and RPCs; the state of memory and devices. docs/operations.md has
// the table of metrics. Metrics contain no name and no text of a peer. A
// program may add its own metrics.
//
// PENSTOCK_METRICS=[HOST:]PORT serves the metrics without a line of code, from
// the first channel or server over Penstock on. All functions in this file are
// thread-safe.

#ifndef PENSTOCK_METRICS_H_
#define PENSTOCK_METRICS_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock {

// Serves GET http://ADDRESS/metrics for as long as the process lives, on its
// own threads, which take no signals. `address` is "[HOST:]PORT", such as
// "9464", "0.0.0.0:9464" or "[::]:9464". The default host is 127.0.0.1. Port 0
// picks a free port. Returns the port.
//
// INVALID_ARGUMENT: `address` is malformed. UNAVAILABLE: the process cannot
// listen there, for example because the port is taken.
//
// Anybody who reaches the port can read the metrics: there is no password. A
// client has 5 s for its request, and 5 s more to take the answer. If there are
// too many clients, the server drops the oldest client of the host with the
// most clients. To make an answer, the server takes the lock of each connection
// for some microseconds, one after another. Clients that ask meanwhile share
// this answer. The child of a fork does not serve its parent's port, and may
// call this function for its own.
absl::StatusOr<int> ServeMetrics(const std::string& address);

// Returns the current metrics in Prometheus' text format (version 0.0.4), for
// programs that serve them in their own way. Blocks for the locks of the
// connections: do not call it where calls must not wait.
std::string MetricsText();

// All series of one name. Prometheus' conventions say how to choose the name.
struct MetricFamily {
  enum class Type { kCounter, kGauge };
  struct Series {
    std::vector<std::pair<std::string, std::string>> labels;  // {name, value}
    double value = 0;
  };
  std::string name;  // "myserver_requests_total"
  std::string help;  // one line
  Type type = Type::kGauge;
  std::vector<Series> series;
};

// Adds the result of `collect` to each answer, after Penstock's own metrics,
// until the last copy of the returned handle is destroyed. The handle's
// destructor waits until a running call of `collect` returns. Afterwards the
// program may destroy the objects that `collect` uses.
//
// `collect` is called on the threads that answer, one call at a time. The
// callback must not block for long, throw, call a function of this file or
// release the handle. Names and values are UTF-8 text. A family is left out if
// Prometheus does not allow its name or the name of a label. Family names must
// be unique in the process. `collect` must bound the number of series. The
// child of a fork shows none of its parent's series.
[[nodiscard]] std::shared_ptr<void> AddMetrics(
    std::function<std::vector<MetricFamily>()> collect);

}  // namespace penstock

#endif  // PENSTOCK_METRICS_H_
