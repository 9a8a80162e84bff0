// The options of TCP sockets.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_SOCKETS_SOCKET_OPTIONS_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_SOCKETS_SOCKET_OPTIONS_H_

#include "absl/types/optional.h"
#include "grpc/event_engine/endpoint_config.h"
#include "grpc/event_engine/event_engine.h"

namespace penstock {
namespace event_engine {

// The options that gRPC's own engine would set on its sockets, according to the
// program's channel arguments.
struct SocketOptions {
  bool reuses_port = true;
  // The value of TCP_USER_TIMEOUT. 0 leaves the system's value.
  int user_timeout_ms = 0;

  // Returns the options. Returns nothing if a function of the program
  // configures the sockets, because then only gRPC's own engine can create
  // them.
  static absl::optional<SocketOptions> Of(
      const grpc_event_engine::experimental::EndpointConfig& config,
      bool is_client);

  // Sets the options of a connection. Ignores errors: no option is essential.
  void ApplyTo(int connection) const;
};

// Returns true for an address of TCP.
bool IsTcp(const grpc_event_engine::experimental::EventEngine::ResolvedAddress&
               address);

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_SOCKETS_SOCKET_OPTIONS_H_
