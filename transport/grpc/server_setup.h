// Makes the ports of a server accept Penstock clients.

#ifndef PENSTOCK_TRANSPORT_GRPC_SERVER_SETUP_H_
#define PENSTOCK_TRANSPORT_GRPC_SERVER_SETUP_H_

#include <grpc/grpc.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_builder.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace core {

// Returns FAILED_PRECONDITION if gRPC was in use before this library was
// loaded, or is another release: then its servers are out of reach.
absl::Status ServersAreHooked();

// Makes the server that `builder` starts accept Penstock beside HTTP/2. Returns
// FAILED_PRECONDITION if gRPC was in use before this library was loaded.
absl::Status EnableServer(grpc::ServerBuilder* builder,
                          const Settings& settings);

// The same for gRPC's core: returns the server that `create`, which is
// grpc_server_create(), makes from `arguments`. If EnableServer() is behind
// them, its settings hold. Returns FAILED_PRECONDITION
// without having called it. Ports are to be added after that.
absl::StatusOr<grpc_server*> CreateEnabledServer(
    decltype(&grpc_server_create) create, const grpc_channel_args* arguments,
    const Settings& settings);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_SERVER_SETUP_H_
