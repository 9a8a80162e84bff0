// libibverbs and librdmacm, opened when first needed.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_LIBRARY_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_LIBRARY_H_

#include "absl/status/statusor.h"
#include "transport/fabric/verbs/api.h"

namespace penstock {
namespace fabric {
namespace verbs {

// The process's libraries, never closed. NOT_FOUND, the same each time, names
// what is missing and the package that has it: a normal answer on a machine
// without RDMA. Thread-safe.
absl::StatusOr<Api*> OpenLibrary();

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_LIBRARY_H_
