// Describes the connections of a channel, which it finds through channelz.

#ifndef PENSTOCK_TRANSPORT_GRPC_DESCRIBE_H_
#define PENSTOCK_TRANSPORT_GRPC_DESCRIBE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "grpcpp/channel.h"

namespace penstock {
namespace core {

// The fields are those of PathReport in penstock.h.
struct ConnectionDescription {
  std::string peer;
  std::string path;
  std::string detail;
  std::string reason;
  uint64_t eager_max_bytes = 0;
  uint64_t chunk_bytes = 0;
  uint64_t messages_sent = 0;
  uint64_t messages_received = 0;
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
};

// Returns one description for each live connection, or none if the channel has
// channelz disabled. Thread-safe.
std::vector<ConnectionDescription> DescribeConnections(grpc::Channel* channel);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_DESCRIBE_H_
