// A ps::Server as a gRPC service.

#ifndef PENSTOCK_PS_SERVICE_H_
#define PENSTOCK_PS_SERVICE_H_

#include <memory>

#include "grpcpp/impl/codegen/service_type.h"
#include "ps/server.h"

namespace penstock::ps {

// Register it with a ServerBuilder that got tensor::AllowUnlimitedMessages.
// `server` must outlive the gRPC server. To stop: server->Drain(), which ends
// every waiting call, then grpc::Server::Shutdown with a deadline, which breaks
// off the streams of workers that stay.
std::unique_ptr<grpc::Service> MakeService(Server* server);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVICE_H_
