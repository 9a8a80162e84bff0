// Opens libibverbs and librdmacm at run time.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_LIBRARY_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_LIBRARY_H_

#include "absl/status/statusor.h"
#include "transport/fabric/verbs/api.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Returns the process's libraries, opened on first use and never closed. On a
// machine without RDMA, each call returns the same NOT_FOUND. The error names
// the missing library and its package. Thread-safe.
absl::StatusOr<Api*> OpenLibrary();

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_LIBRARY_H_
