// Prepares the process for a channel or a server of Penstock.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_USABLE_SETTINGS_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_USABLE_SETTINGS_H_

#include "absl/status/statusor.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace event_engine {

// Caps the HTTP/2 frames that this side accepts, in bytes. A message of 1 MiB
// then takes one frame instead of 64.
constexpr int kMaxFrameBytes = 4 * 1024 * 1024;

// Returns the settings. Installs the engine unless the policy is kOff. Logs and
// returns the reason if Penstock cannot be used. Thread-safe.
absl::StatusOr<Settings> UsableSettings(const Options& options);

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_USABLE_SETTINGS_H_
