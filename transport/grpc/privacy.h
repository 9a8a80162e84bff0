// What a connection's security promises.

#ifndef PENSTOCK_TRANSPORT_GRPC_PRIVACY_H_
#define PENSTOCK_TRANSPORT_GRPC_PRIVACY_H_

#include "src/core/lib/channel/channel_args.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// After the security handshake, from its `args`: whether gRPC tells the
// application that others can not read, or not change, what goes over the
// connection. A handshake that does not say so is taken to promise it.
bool PromisesPrivacy(const grpc_core::ChannelArgs& args);

// From now on the handshake's result says that it promises nothing: neither the
// application nor gRPC, which keeps back what must not go in the clear, is told
// otherwise.
void LowerSecurityLevel(const grpc_core::ChannelArgs& args);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_PRIVACY_H_
