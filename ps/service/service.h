// A ps::Server as a gRPC service.

#ifndef PENSTOCK_PS_SERVICE_SERVICE_H_
#define PENSTOCK_PS_SERVICE_SERVICE_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "grpcpp/server_context.h"
#include "ps/server/server.h"

namespace penstock::ps {

// What a call wants to do.
enum class Permission {
  kRead,        // the model, values, reports
  kTrain,       // define, join, push; and all of kRead
  kAdminister,  // checkpoints; and all of kTrain
};

struct ServiceOptions {
  // Returns OK if the caller may do it. Called on any thread. Empty: everybody
  // may do everything.
  std::function<absl::Status(const grpc::ServerContextBase&, Permission)> check;
};

// Makes a service. Register it with a ServerBuilder that went through
// tensor::AllowUnlimitedMessages(). `server` must outlive the gRPC server. No
// call holds a thread while it waits.
//
// To stop, call server->Drain(), which ends every wait, and then
// grpc::Server::Shutdown() with a deadline, which cancels the streams of
// workers that have not left.
std::unique_ptr<grpc::Service> MakeService(Server* server,
                                           ServiceOptions options = {});

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVICE_SERVICE_H_
