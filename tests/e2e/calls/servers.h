// Runs one service behind each of gRPC's server APIs.

#ifndef PENSTOCK_TESTS_E2E_CALLS_SERVERS_H_
#define PENSTOCK_TESTS_E2E_CALLS_SERVERS_H_

#include <memory>

#include "grpcpp/server_builder.h"

namespace penstock::e2e {

enum class Api { kSync, kAsync, kCallback };

// Returns "Sync", "Async" or "Callback".
const char* NameOf(Api api);

// A server of TestService. UnaryCall answers with the requested number of
// zeros. FullDuplexCall answers each message with the requested number of
// zeros.
class ApiServer {
 public:
  virtual ~ApiServer() = default;
  virtual void Register(grpc::ServerBuilder* builder) = 0;
  // Serves at least one UnaryCall and then one FullDuplexCall. Call Begin()
  // after BuildAndStart().
  virtual void Begin() = 0;
  // Blocks until a FullDuplexCall has ended. Returns true if it was cancelled.
  virtual bool AwaitCancelled() = 0;
  // Ends the service. Call End() between the server's Shutdown() and its
  // destruction.
  virtual void End() = 0;
};

std::unique_ptr<ApiServer> MakeApiServer(Api api);

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_CALLS_SERVERS_H_
