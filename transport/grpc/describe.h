// Describes the connections of a channel or server. Finds the connections
// through channelz.

#ifndef PENSTOCK_TRANSPORT_GRPC_DESCRIBE_H_
#define PENSTOCK_TRANSPORT_GRPC_DESCRIBE_H_

#include <vector>

#include "grpcpp/channel.h"
#include "grpcpp/server.h"
#include "transport/metrics/connection_info.h"

namespace penstock {
namespace core {

// Returns one description for each live connection, including connections over
// HTTP/2. Returns none if the channel or server has disabled channelz.
// Thread-safe.
std::vector<metrics::ConnectionInfo> DescribeConnections(
    grpc::Channel* channel);
std::vector<metrics::ConnectionInfo> DescribeConnections(grpc::Server* server);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_DESCRIBE_H_
