// Which counters of a process moved between two looks at its metrics page.

#ifndef PENSTOCK_TESTS_TRANSPORT_METRICS_MOVED_COUNTERS_H_
#define PENSTOCK_TESTS_TRANSPORT_METRICS_MOVED_COUNTERS_H_

#include <string>
#include <vector>

namespace penstock::metrics {

// Takes the text of the page before and after. Returns each series of a counter
// whose value differs, as `name{labels} +difference`.
std::vector<std::string> MovedCounters(const std::string& before,
                                       const std::string& after);

// Returns the same without the counters that count ordinary work: connections
// that begin and end, calls and messages. A counter that is new counts as one
// that must stay, until moved_counters.cc names it.
std::vector<std::string> MovedWithoutCause(const std::string& before,
                                           const std::string& after);

// Returns how many sessions the page shows as begun and not yet ended.
double OpenSessions(const std::string& page);

}  // namespace penstock::metrics

#endif  // PENSTOCK_TESTS_TRANSPORT_METRICS_MOVED_COUNTERS_H_
