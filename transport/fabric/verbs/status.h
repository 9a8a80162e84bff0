// Converts results of devices to statuses.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_STATUS_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "transport/fabric/verbs/api.h"
#include "transport/metrics/labels.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Returns "<operation> on <device>: <strerror>", with the remedy if there is
// one. `device` is null before there is a device.
absl::Status CallFailed(Api* api, int error_number, absl::string_view operation,
                        ibv_context* device);

// Returns the error of a connection whose request ended with this completion
// status. Returns OK for IBV_WC_SUCCESS. No other code converts completion
// errors.
absl::Status CompletionStatus(ibv_wc_status status);
// Returns the label of a completion for metrics.
metrics::Completion CompletionLabel(ibv_wc_status status);

// Returns the reason why a connection could not be made, or why it ended.
absl::Status CmStatus(rdma_cm_event_type event, int status);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_STATUS_H_
