// The limit on received messages that a channel's arguments set.

#ifndef PENSTOCK_TRANSPORT_GRPC_RECEIVE_LIMIT_H_
#define PENSTOCK_TRANSPORT_GRPC_RECEIVE_LIMIT_H_

#include <grpc/impl/codegen/grpc_types.h>

#include "src/core/lib/channel/channel_args.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// In bytes; negative: none. As gRPC's own message size filter reads it; limits
// of single methods are left to that filter.
inline int64_t MaxReceiveBytes(const grpc_core::ChannelArgs& args) {
  if (args.WantMinimalStack()) return -1;
  return args.GetInt(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH)
      .value_or(GRPC_DEFAULT_MAX_RECV_MESSAGE_LENGTH);
}

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_RECEIVE_LIMIT_H_
