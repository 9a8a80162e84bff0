#include "transport/grpc/polling/polling_mode.h"

#include "transport/settings/settings.h"

namespace penstock {
namespace core {

progress::PollingMode PollingModeOfProcess() {
  static const progress::PollingMode mode =
      ResolvePolling().value_or(progress::PollingMode::kAdaptive);
  return mode;
}

}  // namespace core
}  // namespace penstock
