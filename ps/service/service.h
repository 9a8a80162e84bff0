// A ps::Server as a gRPC service.

#ifndef PENSTOCK_PS_SERVICE_SERVICE_H_
#define PENSTOCK_PS_SERVICE_SERVICE_H_

#include <memory>

#include "grpcpp/impl/codegen/service_type.h"
#include "ps/access/access.h"
#include "ps/server/checkpoint_writer.h"
#include "ps/server/server.h"

namespace penstock::ps {

struct ServiceOptions {
  // Who may call what; outlives the gRPC server. Null: everybody everything.
  Access* access = nullptr;
  // Outlives the service. Null: the server has no folder for checkpoints.
  CheckpointWriter* checkpoints = nullptr;
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
