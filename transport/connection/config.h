// The configuration of a connection.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_CONFIG_H_
#define PENSTOCK_TRANSPORT_CONNECTION_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "transport/connection/keepalive.h"
#include "transport/paths/half_open.h"
#include "transport/settings/settings.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace memory {
class DeviceAccess;
}  // namespace memory

namespace connection {

struct Config {
  bool is_client = false;
  // The negotiated version of the protocol.
  uint8_t version = wire::kVersion;
  Settings settings;
  // The peer's address, for logs.
  std::string peer;
  // True if a new socket to `peer` reaches the same process. False if a proxy
  // is in between, or if other code set up the connection's socket. `peer` has
  // gRPC's form of an address.
  bool may_open_sockets = false;
  // True if the connection's security promises privacy. See paths::SidePaths.
  bool is_private = false;
  memory::DeviceAccess* devices = nullptr;
  Keepalive::Config keepalive;
  PingPolice::Config ping_police;
  // Caps the bytes of a received message. Negative means no limit.
  int64_t max_receive_bytes = -1;
  size_t max_metadata_bytes = 8 * 1024;
  // Limits the number of streams that a client may have open at this server.
  uint32_t max_streams = UINT32_MAX;
  // Sends a release together with a later frame, up to 25 ms late. False where
  // a program waits until the peer has released its memory, such as
  // TensorFlow's ring.
  bool defers_answers = false;
  // This connection's slot in the server's limit of half-open connections.
  // Freed when a path is chosen or the session ends.
  paths::HalfOpen::Slot half_open;
};

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_CONFIG_H_
