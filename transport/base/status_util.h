// From errno to absl::Status, in one place.

#ifndef PENSTOCK_TRANSPORT_BASE_STATUS_UTIL_H_
#define PENSTOCK_TRANSPORT_BASE_STATUS_UTIL_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace base {

// "<operation>: <strerror>", with the code that fits `error_number`: memory
// and descriptor limits are RESOURCE_EXHAUSTED, a missing peer is UNAVAILABLE,
// a refusal is PERMISSION_DENIED, all else INTERNAL.
absl::Status ErrnoStatus(int error_number, absl::string_view operation);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_STATUS_UTIL_H_
