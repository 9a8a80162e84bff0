// Makes the ports of a server accept Penstock clients.

#ifndef PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_SERVER_SETUP_H_
#define PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_SERVER_SETUP_H_

#include <grpc/grpc.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_builder.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace core {

// Returns OK if servers can be enabled. Returns FAILED_PRECONDITION if gRPC was
// in use before this library was loaded, or if gRPC is another release.
absl::Status ServersAreHooked();

// Makes the server that `builder` starts accept both Penstock and HTTP/2.
// Returns FAILED_PRECONDITION if servers cannot be enabled.
absl::Status EnableServer(grpc::ServerBuilder* builder,
                          const Settings& settings);

// Creates an enabled server of gRPC's core. Calls `create`, which is
// grpc_server_create(), with `arguments`, and returns the result. If the
// arguments come from EnableServer(), keeps their settings and ignores
// `settings`. Returns FAILED_PRECONDITION without calling `create` if servers
// cannot be enabled. Add ports after this call.
absl::StatusOr<grpc_server*> CreateEnabledServer(
    decltype(&grpc_server_create) create, const grpc_channel_args* arguments,
    const Settings& settings);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_SERVER_SETUP_H_
