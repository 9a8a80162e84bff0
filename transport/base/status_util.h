// Converts errno to absl::Status.

#ifndef PENSTOCK_TRANSPORT_BASE_STATUS_UTIL_H_
#define PENSTOCK_TRANSPORT_BASE_STATUS_UTIL_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace base {

// Returns a status with the message "<operation>: <strerror>". The code is
// RESOURCE_EXHAUSTED for limits of memory or descriptors, UNAVAILABLE for a
// missing peer, PERMISSION_DENIED for a refusal, DEADLINE_EXCEEDED for
// ETIMEDOUT, and INTERNAL for everything else. Thread-safe.
absl::Status ErrnoStatus(int error_number, absl::string_view operation);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_STATUS_UTIL_H_
