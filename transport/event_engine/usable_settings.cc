#include "transport/event_engine/usable_settings.h"

#include "absl/strings/str_cat.h"
#include "transport/base/log.h"
#include "transport/event_engine/engine.h"

namespace penstock {
namespace event_engine {

absl::StatusOr<Settings> UsableSettings(const Options& options) {
  absl::StatusOr<Settings> settings = ResolveSettings(options);
  absl::Status usable = settings.status();
  if (usable.ok() && settings->policy != Policy::kOff) {
    usable = InstallEngine();
  }
  if (usable.ok()) return settings;
  base::LogError(absl::StrCat("Penstock is not used: ", usable.message()));
  return usable;
}

}  // namespace event_engine
}  // namespace penstock
