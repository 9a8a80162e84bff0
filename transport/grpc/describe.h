// Describes the connections of a channel or server, which it finds through
// channelz.

#ifndef PENSTOCK_TRANSPORT_GRPC_DESCRIBE_H_
#define PENSTOCK_TRANSPORT_GRPC_DESCRIBE_H_

#include <vector>

#include "grpcpp/channel.h"
#include "grpcpp/server.h"
#include "transport/metrics/connection_info.h"

namespace penstock {
namespace core {

// Returns one description for each live connection, those over HTTP/2 too, or
// none if the channel, or the server, has channelz disabled. Thread-safe.
std::vector<metrics::ConnectionInfo> DescribeConnections(
    grpc::Channel* channel);
std::vector<metrics::ConnectionInfo> DescribeConnections(grpc::Server* server);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_DESCRIBE_H_
