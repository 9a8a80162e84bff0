#include "transport/event_engine/sockets/socket_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <limits>

#include "grpc/impl/channel_arg_names.h"

namespace penstock {
namespace event_engine {
namespace {

using grpc_event_engine::experimental::EndpointConfig;
using grpc_event_engine::experimental::EventEngine;

// The defaults of gRPC. An infinite time disables keepalive.
constexpr int kNever = std::numeric_limits<int>::max();
constexpr int kServerKeepaliveMillis = 2 * 60 * 60 * 1000;
constexpr int kKeepaliveTimeoutMillis = 20 * 1000;

int UserTimeoutOf(const EndpointConfig& config, bool is_client) {
  const int period = config.GetInt(GRPC_ARG_KEEPALIVE_TIME_MS)
                         .value_or(is_client ? kNever : kServerKeepaliveMillis);
  const int timeout = config.GetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS)
                          .value_or(kKeepaliveTimeoutMillis);
  return period <= 0 || period == kNever || timeout < 0 ? 0 : timeout;
}

}  // namespace

absl::optional<SocketOptions> SocketOptions::Of(const EndpointConfig& config,
                                                bool is_client) {
  if (config.GetVoidPointer(GRPC_ARG_SOCKET_MUTATOR) != nullptr) {
    return absl::nullopt;
  }
  SocketOptions options;
  options.reuses_port =
      config.GetInt(GRPC_ARG_ALLOW_REUSEPORT).value_or(1) != 0;
  options.user_timeout_ms = UserTimeoutOf(config, is_client);
  return options;
}

void SocketOptions::ApplyTo(int connection) const {
  const int on = 1;
  (void)setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (user_timeout_ms == 0) return;
  (void)setsockopt(connection, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms,
                   sizeof user_timeout_ms);
}

bool IsTcp(const EventEngine::ResolvedAddress& address) {
  return address.size() >= sizeof(sa_family_t) &&
         (address.address()->sa_family == AF_INET ||
          address.address()->sa_family == AF_INET6);
}

}  // namespace event_engine
}  // namespace penstock
