// One service behind each of gRPC's server APIs.

#ifndef PENSTOCK_TESTS_E2E_SERVERS_H_
#define PENSTOCK_TESTS_E2E_SERVERS_H_

#include <memory>

#include "grpcpp/server_builder.h"

namespace penstock::e2e {

enum class Api { kSync, kAsync, kCallback };

// "Sync" and so on.
const char* NameOf(Api api);

// Of TestService: UnaryCall answers with as many zeros as are asked for, and
// FullDuplexCall so for each message.
class ApiServer {
 public:
  virtual ~ApiServer() = default;
  virtual void Register(grpc::ServerBuilder* builder) = 0;
  // After BuildAndStart: serves one UnaryCall and then one FullDuplexCall. It
  // may do so for more.
  virtual void Begin() = 0;
  // Blocks until a FullDuplexCall has ended; whether it was cancelled.
  virtual bool AwaitCancelled() = 0;
  // Between the server's Shutdown and its destruction.
  virtual void End() = 0;
};

std::unique_ptr<ApiServer> MakeApiServer(Api api);

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_SERVERS_H_
