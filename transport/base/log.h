// Logs lines to standard error, such as which path a connection took, and why
// not a better one.

#ifndef PENSTOCK_TRANSPORT_BASE_LOG_H_
#define PENSTOCK_TRANSPORT_BASE_LOG_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace penstock {
namespace base {

// Longer texts are cut.
constexpr size_t kMaxLogLineBytes = 2048;
// The limits of the process: how many lines may be logged at once, and how many
// more each second. They hold for information, and again for warnings and
// errors together. The burst suffices for a server that starts and takes many
// connections. Lines that are left out are counted, and the count is logged
// before the next line.
constexpr int kLogBurst = 1000;
constexpr int kLogLinesPerSecond = 10;

// The environment variable with the lowest level that is logged. A bad value
// is logged, and the default holds instead. An empty one counts as unset.
constexpr const char* kLogVariable = "PENSTOCK_LOG";
constexpr absl::string_view kLogLevels[] = {"debug", "info", "warning", "error",
                                            "off"};
constexpr const char* kDefaultLogLevel = "info";

// Log one line, within the limits above. `text` may come from a peer:
// Printable() makes it safe. They do not block: a line is left out if standard
// error has no room for it. So they may be called under a lock. Thread-safe. Do
// not call them on the path of a message.
void LogInfo(absl::string_view text);
void LogWarning(absl::string_view text);
void LogError(absl::string_view text);

// Returns how many lines the limits, and a standard error without room, have
// left out since the process began. Thread-safe.
uint64_t LogLinesLeftOut();
// For those with limits of their own.
void CountLogLineLeftOut();

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_LOG_H_
