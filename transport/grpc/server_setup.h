// Makes the ports of a server look for Penstock clients.

#ifndef PENSTOCK_TRANSPORT_GRPC_SERVER_SETUP_H_
#define PENSTOCK_TRANSPORT_GRPC_SERVER_SETUP_H_

#include "absl/status/status.h"
#include "grpcpp/server_builder.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace core {

// The server that `builder` starts accepts Penstock beside HTTP/2.
// FAILED_PRECONDITION: gRPC was initialised before this library was loaded.
absl::Status EnableServer(grpc::ServerBuilder* builder,
                          const Settings& settings);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_SERVER_SETUP_H_
