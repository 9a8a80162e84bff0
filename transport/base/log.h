// One line to stderr about what people must know: which path a connection took,
// and why not a better one.

#ifndef PENSTOCK_TRANSPORT_BASE_LOG_H_
#define PENSTOCK_TRANSPORT_BASE_LOG_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace penstock {
namespace base {

// Longer lines are cut.
constexpr size_t kMaxLogLineBytes = 2048;
// What may come at once, and then each second: of information, and as much of
// warnings and errors. A server that is started takes many connections. What is
// left out is counted, and a line says so when the next may be written.
constexpr int kLogBurst = 1000;
constexpr int kLogLinesPerSecond = 10;

// Says from which level on lines are written. A bad value is logged, and then
// the default holds.
constexpr const char* kLogVariable = "PENSTOCK_LOG";
constexpr absl::string_view kLogLevels[] = {"debug", "info", "warning", "error",
                                            "off"};
constexpr const char* kDefaultLogLevel = "info";

// Peers have a say in how many lines there are and what they contain: `text`
// is written as Printable(), and not beyond the limits above. Nothing waits for
// who reads stderr: a line for which there is no room is left out. So these may
// be called under a lock. Thread-safe; never on a message's path.
void LogInfo(absl::string_view text);
void LogWarning(absl::string_view text);
void LogError(absl::string_view text);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_LOG_H_
