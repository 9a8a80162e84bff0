// Finds a process's counters that changed between two metrics pages.

#ifndef PENSTOCK_TESTS_TRANSPORT_METRICS_MOVED_COUNTERS_H_
#define PENSTOCK_TESTS_TRANSPORT_METRICS_MOVED_COUNTERS_H_

#include <string>
#include <vector>

namespace penstock::metrics {

// Takes the page before and after. Returns each changed counter series as
// `name{labels} +difference`.
std::vector<std::string> MovedCounters(const std::string& before,
                                       const std::string& after);

// Returns the same list without counters of ordinary work: connections that
// begin and end, calls and messages. An unknown counter counts as an error
// counter, unless moved_counters.cc names it.
std::vector<std::string> MovedWithoutCause(const std::string& before,
                                           const std::string& after);

// Returns the number of sessions on the page that have not ended.
double OpenSessions(const std::string& page);

}  // namespace penstock::metrics

#endif  // PENSTOCK_TESTS_TRANSPORT_METRICS_MOVED_COUNTERS_H_
