// Determines if this process can use Penstock, and with which settings.

#ifndef PENSTOCK_TRANSPORT_USABLE_SETTINGS_H_
#define PENSTOCK_TRANSPORT_USABLE_SETTINGS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/settings/settings.h"

namespace penstock {

// Returns the settings. If Penstock cannot be used, logs and returns the
// reason. Policy::kOff is no error; the caller checks the policy. All functions
// here are thread-safe.
absl::StatusOr<Settings> UsableSettings(const Options& options);

// Prepares the process for its first channel over Penstock. Decides where stubs
// allocate messages. Warns once if threads that wait in gRPC cannot poll.
void PrepareForChannel(const Settings& settings);
// Prepares the process for its first server. Decides where stubs allocate
// messages.
void PrepareForServer(const Settings& settings);

// Logs why Penstock is not used.
void SayWhyNot(const absl::Status& reason);

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_USABLE_SETTINGS_H_
