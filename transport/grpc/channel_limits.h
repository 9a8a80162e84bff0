// The limits in the arguments of a channel or server, with the defaults and the
// meaning that they have for gRPC's HTTP/2 transport.

#ifndef PENSTOCK_TRANSPORT_GRPC_CHANNEL_LIMITS_H_
#define PENSTOCK_TRANSPORT_GRPC_CHANNEL_LIMITS_H_

#include <cstdint>

#include "src/core/lib/channel/channel_args.h"
#include "transport/connection/keepalive.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

struct ChannelLimits {
  // The largest message to receive, in bytes; negative: no limit. gRPC's
  // message size filter applies the limits of single methods.
  int64_t max_receive_bytes = -1;
  // The most metadata to receive, in bytes. Each entry counts 32 more, as in
  // HTTP/2.
  size_t max_metadata_bytes = 8 * 1024;
  // Limits the streams that a client may have open at a server.
  uint32_t max_streams = UINT32_MAX;
  connection::Keepalive::Config keepalive;
  connection::PingPolice::Config ping_police;
};

ChannelLimits ReadChannelLimits(const grpc_core::ChannelArgs& args,
                                bool is_client);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_CHANNEL_LIMITS_H_
