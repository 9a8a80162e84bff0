// The value of PENSTOCK_POLLING for the threads that wait in gRPC.

#ifndef PENSTOCK_TRANSPORT_GRPC_POLLING_POLLING_MODE_H_
#define PENSTOCK_TRANSPORT_GRPC_POLLING_POLLING_MODE_H_

#include "transport/progress/spin_policy.h"

namespace penstock {
namespace core {

// Returns the process's value of PENSTOCK_POLLING at the first call. Returns
// the default for a bad value, which is logged when the first channel or server
// is created. Thread-safe.
progress::PollingMode PollingModeOfProcess();

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_POLLING_POLLING_MODE_H_
