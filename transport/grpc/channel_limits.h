// What a channel's or server's arguments limit, as gRPC's HTTP/2 transport
// reads them.

#ifndef PENSTOCK_TRANSPORT_GRPC_CHANNEL_LIMITS_H_
#define PENSTOCK_TRANSPORT_GRPC_CHANNEL_LIMITS_H_

#include <cstdint>

#include "src/core/lib/channel/channel_args.h"
#include "transport/grpc/grpc_abi.h"
#include "transport/session/keepalive.h"

namespace penstock {
namespace core {

struct ChannelLimits {
  // Of a message, in bytes; negative: none. Limits of single methods are left
  // to gRPC's message size filter.
  int64_t max_receive_bytes = -1;
  // Of received metadata, in bytes as HTTP/2 counts: 32 more for each entry.
  size_t max_metadata_bytes = 8 * 1024;
  // That a client may have open at a server.
  uint32_t max_streams = UINT32_MAX;
  session::Keepalive::Config keepalive;
  session::PingPolice::Config ping_police;
};

ChannelLimits ReadChannelLimits(const grpc_core::ChannelArgs& args,
                                bool is_client);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_CHANNEL_LIMITS_H_
