// Records the calls of gRPC servers, over any transport.

#ifndef PENSTOCK_TRANSPORT_GRPC_FILTERS_RECORDING_FILTER_H_
#define PENSTOCK_TRANSPORT_GRPC_FILTERS_RECORDING_FILTER_H_

#include "src/core/lib/config/core_configuration.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

// Registers the filter that records messages. For each connection that a server
// accepts, checks if the process has a record::Recorder. If so, adds a filter
// directly below the server, where messages are decompressed. Otherwise adds no
// filter.
void RegisterRecordingFilter(grpc_core::CoreConfiguration::Builder* builder);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_FILTERS_RECORDING_FILTER_H_
