// The limits in the arguments of a channel or server. Defaults and meaning are
// the same as in gRPC's HTTP/2 transport.

#ifndef PENSTOCK_TRANSPORT_GRPC_CHANNEL_LIMITS_H_
#define PENSTOCK_TRANSPORT_GRPC_CHANNEL_LIMITS_H_

#include <cstdint>

#include "src/core/lib/channel/channel_args.h"
#include "transport/connection/keepalive.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

struct ChannelLimits {
  // Caps the bytes of a received message. Negative means no limit. Per-method
  // limits are left to gRPC's message size filter.
  int64_t max_receive_bytes = -1;
  // Caps the bytes of received metadata. Each entry counts 32 bytes extra, as
  // in HTTP/2.
  size_t max_metadata_bytes = 8 * 1024;
  // Caps the streams that a client may have open at a server.
  uint32_t max_streams = UINT32_MAX;
  connection::Keepalive::Config keepalive;
  connection::PingPolice::Config ping_police;
};

ChannelLimits ReadChannelLimits(const grpc_core::ChannelArgs& args,
                                bool is_client);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_CHANNEL_LIMITS_H_
