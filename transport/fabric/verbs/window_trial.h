// Finds out whether a device's memory windows keep peers out of other memory.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_WINDOW_TRIAL_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_WINDOW_TRIAL_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/fabric/verbs/api.h"

namespace penstock {
namespace fabric {
namespace verbs {

// The time that a trial may take. Adapters take milliseconds.
constexpr absl::Duration kWindowTrialLimit = absl::Seconds(1);

// What a device's windows keep peers out of.
enum class WindowTrust {
  kAll,          // all that the trial looks at
  kAllButRange,  // all but what lies beyond the window, within its region
};

// What becomes of a device that fails only in the range.
enum class RangeRule {
  kEnforced,  // it is refused
  kForgiven,  // its trust is kAllButRange: for tests on Soft-RoCE
};

// Tries windows of type 2 with queue pairs that the device has with itself. A
// READ inside the window must succeed, and bring the right bytes. Each of these
// must fail:
//
//   beyond the window's range, but inside its region
//   by the window's key, once it has been invalidated
//   by the window's key, through a queue pair that it was not bound to
//   by the key of its region, which permits no remote access
//
// Returns the trust if all of that is so, as far as `rule` wants it, and else,
// in few words, the first thing that is not. Leaves nothing behind. Blocks for
// up to `limit`, and for as long as the calls themselves take.
absl::StatusOr<WindowTrust> TryWindows(Api* api, ibv_context* device,
                                       uint8_t port,
                                       absl::Duration limit = kWindowTrialLimit,
                                       RangeRule rule = RangeRule::kEnforced);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_WINDOW_TRIAL_H_
