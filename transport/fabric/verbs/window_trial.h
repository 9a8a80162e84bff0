// Tests if a device's memory windows keep peers out of other memory.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_WINDOW_TRIAL_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_WINDOW_TRIAL_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/fabric/verbs/api.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Limits the time of a trial. Adapters take milliseconds.
constexpr absl::Duration kWindowTrialLimit = absl::Seconds(1);

// The memory that a device's windows protect.
enum class WindowTrust {
  kAll,          // all memory that the trial checks
  kAllButRange,  // all except memory beyond the window, within its region
};

// The rule for a device that fails only the test of the window's range.
enum class RangeRule {
  kEnforced,  // the device is refused
  kForgiven,  // the trust is kAllButRange: for tests on Soft-RoCE
};

// Tests windows of type 2 with queue pairs between the device and itself. A
// READ inside the window must succeed, and return the right bytes. Each of
// these READs must fail:
//
//   beyond the window's range, but inside its region
//   by the window's key, once it has been invalidated
//   by the window's key, through a queue pair that it was not bound to
//   by the key of its region, which permits no remote access
//
// Returns the degree of trust if the device passes the tests that `rule`
// demands. Otherwise returns an error that names the first failed test. Leaves
// no objects behind. Blocks for up to `limit`, plus the time of the calls
// themselves.
absl::StatusOr<WindowTrust> TryWindows(Api* api, ibv_context* device,
                                       uint8_t port,
                                       absl::Duration limit = kWindowTrialLimit,
                                       RangeRule rule = RangeRule::kEnforced);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_WINDOW_TRIAL_H_
