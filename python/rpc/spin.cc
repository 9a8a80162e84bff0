#include "python/rpc/spin.h"

#include <cstdlib>

#include "transport/rpc/poll_wait.h"
#include "transport/settings/settings.h"

namespace penstock::python {

namespace {

// Returns PENSTOCK_POLLING, or kEvent if it is not set. Python itself uses most
// of the time of a call. In measurements on a busy machine, spinning gained
// nothing, and calls were slower if a spinning thread lost its core.
progress::PollingMode Polling() {
  static const progress::PollingMode mode = [] {
    const char* const text = std::getenv("PENSTOCK_POLLING");
    if (text == nullptr || *text == '\0') return progress::PollingMode::kEvent;
    return ResolvePolling().value_or(progress::PollingMode::kEvent);
  }();
  return mode;
}

}  // namespace

progress::PollingMode LoopPolling() {
  return Polling() == progress::PollingMode::kBusy
             ? progress::PollingMode::kBusy
             : progress::PollingMode::kEvent;
}

bool PollUntil(absl::Time deadline, const std::function<bool()>& is_done,
               const std::function<bool()>& sleep) {
  return rpc::PollUntil(Polling(), deadline, is_done, sleep);
}

}  // namespace penstock::python
