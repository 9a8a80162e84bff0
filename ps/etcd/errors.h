// Explains etcd's errors.

#ifndef PENSTOCK_PS_ETCD_ERRORS_H_
#define PENSTOCK_PS_ETCD_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/status.h"

namespace penstock::ps::etcd {

// Returns the error of a call to `endpoint`, with a remedy if there is one.
absl::Status Explain(absl::string_view endpoint, absl::string_view operation,
                     const grpc::Status& status);

// Returns true if the endpoint may succeed later.
bool MayPass(const absl::Status& status);

// Returns true if every endpoint would give this error. Other errors may be
// specific to one endpoint: its disk is full, or a proxy listens there instead
// of etcd.
bool IsFinal(const absl::Status& status);

// Returns true if etcd wants another token.
bool IsTokenRefused(const grpc::Status& status);

// Returns true if etcd has no authentication, and therefore gives no tokens.
bool HasNoUsers(const grpc::Status& status);

}  // namespace penstock::ps::etcd

#endif  // PENSTOCK_PS_ETCD_ERRORS_H_
