// Explains why a server could not be reached, and names the remedy.

#ifndef PENSTOCK_CLI_CONNECT_FAILURE_H_
#define PENSTOCK_CLI_CONNECT_FAILURE_H_

#include <string>

#include "absl/time/time.h"
#include "grpcpp/support/status.h"

namespace penstock::cli {

// Returns a sentence about `server`, in gRPC's notation, for a call without an
// answer within `timeout`: "cannot reach ps0:2222: nothing listens there (...);
// is the server running, on that port and address?". The text is printable. May
// take a second to identify the program that listens there.
std::string ExplainConnectFailure(const std::string& server,
                                  const grpc::Status& status,
                                  absl::Duration timeout, bool with_tls);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_CONNECT_FAILURE_H_
