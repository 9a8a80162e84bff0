// Whether a device's memory windows can be trusted with other peers' memory.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_WINDOW_TRIAL_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_WINDOW_TRIAL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "transport/fabric/verbs/api.h"

namespace penstock {
namespace fabric {
namespace verbs {

// What a device is given for all that is tried. Adapters take milliseconds.
constexpr absl::Duration kWindowTrialLimit = absl::Seconds(1);

// Tries it, with queue pairs that the device has with itself: a READ inside a
// window of type 2 must succeed and bring the right bytes, and each of these
// must fail:
//
//   beyond the window's range, but inside its region
//   by the window's key, once it has been invalidated
//   by the window's key, through a queue pair that it was not bound to
//   by the key of its region, which permits no remote access
//
// OK if all of it is so; else the first thing that is not, in few words.
// Nothing is left behind. Blocks, for `limit` and what the calls themselves
// take.
absl::Status TryWindows(Api* api, ibv_context* device, uint8_t port,
                        absl::Duration limit = kWindowTrialLimit);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_WINDOW_TRIAL_H_
