// One line to stderr about what people must know: which path a connection took,
// and why not a better one.

#ifndef PENSTOCK_TRANSPORT_BASE_LOG_H_
#define PENSTOCK_TRANSPORT_BASE_LOG_H_

#include "absl/strings/string_view.h"

namespace penstock {
namespace base {

// PENSTOCK_LOG=debug|info|warning|error|off says from which level on lines are
// written; info where it is not set, or not one of these, which is logged.
// Thread-safe; never on a message's path.
void LogInfo(absl::string_view text);
void LogWarning(absl::string_view text);
void LogError(absl::string_view text);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_LOG_H_
