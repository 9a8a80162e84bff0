// Logs lines to standard error. For example, logs the path of a connection, and
// why a better path was not possible.

#ifndef PENSTOCK_TRANSPORT_BASE_LOG_H_
#define PENSTOCK_TRANSPORT_BASE_LOG_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace penstock {
namespace base {

// The maximum length of a log line, in bytes. Longer lines are cut.
constexpr size_t kMaxLogLineBytes = 2048;
// The limits on the log lines of the process: the size of a burst, and the rate
// in lines per second. Information has limits of its own; warnings and errors
// share the same limits. The burst is large enough for a starting server that
// accepts many connections. The next logged line is preceded by the number of
// dropped lines.
constexpr int kLogBurst = 1000;
constexpr int kLogLinesPerSecond = 10;

// The environment variable for the lowest level that is logged. A bad value is
// logged, and the default is used. An empty value counts as unset.
constexpr const char* kLogVariable = "PENSTOCK_LOG";
constexpr absl::string_view kLogLevels[] = {"debug", "info", "warning", "error",
                                            "off"};
constexpr const char* kDefaultLogLevel = "info";

// Log one line, within the limits above. `text` may come from a peer:
// Printable() makes it safe. Do not block: a line is dropped if standard error
// has no room. The caller may hold a lock. Thread-safe. Too slow for the path
// of a message.
void LogInfo(absl::string_view text);
void LogWarning(absl::string_view text);
void LogError(absl::string_view text);

// Returns how many lines were dropped since the process began, because of the
// limits or because standard error had no room. Thread-safe.
uint64_t LogLinesLeftOut();
// Counts a line that the caller dropped because of its own limit.
void CountLogLineLeftOut();

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_LOG_H_
