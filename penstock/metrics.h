// Metrics of this process, for Prometheus and those who read its format.
//
// They are counted whether or not somebody reads them: what the connections
// carried and over which path, why not over a better one, how long messages and
// RPCs took, and what memory and devices say. docs/operations.md has the table
// of them. They name no peer and hold nothing that a peer has said. A program
// may add its own.
//
// PENSTOCK_METRICS=[HOST:]PORT serves them without a line of code, from the
// first channel or server over Penstock on. All functions in this file are
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

// Answers GET http://ADDRESS/metrics for as long as the process lives, on
// threads of its own that take no signals. `address` is "[HOST:]PORT", such as
// "9464", "0.0.0.0:9464" or "[::]:9464"; without a host it is 127.0.0.1. Port 0
// is one that is free. Returns the port. INVALID_ARGUMENT: no such address.
// UNAVAILABLE: the process cannot listen there, as when the port is taken.
//
// Whoever reaches the port can read the metrics: it asks for no password. A
// client has 5 s for its request, and 5 s more to take the answer. Of too many
// clients, the oldest of the host that has the most goes first. Answering takes
// the lock of each connection for some microseconds, one after another, once
// for all who ask meanwhile. The child of a fork does not serve what its parent
// does, and may call this for itself.
absl::StatusOr<int> ServeMetrics(const std::string& address);

// Returns the metrics as they are now, in Prometheus' text format (version
// 0.0.4), for programs that serve them in a way of their own. Waits for the
// locks of the connections: do not call it where calls must not wait.
std::string MetricsText();

// Series of one name. Prometheus' conventions say what to call them.
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

// Shows what `collect` returns in each answer, behind Penstock's own, until the
// last copy of the returned handle is gone. Its destructor waits for a call
// that is under way, so what `collect` uses may be destroyed after it.
//
// `collect` is called on the threads that answer, one call at a time. It must
// not block for long, throw, call a function of this file or let go of the
// handle. Names and values are UTF-8 text. A family whose name, or that of a
// label, Prometheus does not allow is left out. No two families of a process
// may have the same name; how many series there are is for `collect` to bound.
// The child of a fork shows none of its parent's.
[[nodiscard]] std::shared_ptr<void> AddMetrics(
    std::function<std::vector<MetricFamily>()> collect);

}  // namespace penstock

#endif  // PENSTOCK_METRICS_H_
