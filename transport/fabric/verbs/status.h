// What devices answer, as statuses.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_STATUS_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "transport/fabric/verbs/api.h"

namespace penstock {
namespace fabric {
namespace verbs {

// "<operation> on <device>: <strerror>", with the remedy where there is one.
// `device` may be null: there is none yet.
absl::Status CallFailed(Api* api, int error_number, absl::string_view operation,
                        ibv_context* device);

// The one table of completion errors: what each means for a connection. OK for
// IBV_WC_SUCCESS.
absl::Status CompletionStatus(ibv_wc_status status);

// Why a connection was not made, or ended.
absl::Status CmStatus(rdma_cm_event_type event, int status);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_STATUS_H_
