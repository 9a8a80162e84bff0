// Takes down the calls of gRPC's servers, over whatever carries them.

#ifndef PENSTOCK_TRANSPORT_GRPC_RECORDING_FILTER_H_
#define PENSTOCK_TRANSPORT_GRPC_RECORDING_FILTER_H_

#include "src/core/lib/config/core_configuration.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// Has gRPC ask, for each connection that a server accepts, whether there is a
// record::Recorder. If so, the connection's calls pass a filter directly below
// the server, which sees messages as the application does: decompressed. If
// not, nothing is added to them.
void RegisterRecordingFilter(grpc_core::CoreConfiguration::Builder* builder);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_RECORDING_FILTER_H_
