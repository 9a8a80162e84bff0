// Makes channels to the parameter servers, and describes their paths.

#ifndef PENSTOCK_EXAMPLES_COMMON_CONNECTION_H_
#define PENSTOCK_EXAMPLES_COMMON_CONNECTION_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"

namespace penstock::examples {

// Returns one channel for each address, over Penstock, or over stock gRPC if
// `stock`. Calls carry the secret, unless it is empty.
std::vector<std::shared_ptr<grpc::Channel>> Connect(
    const std::vector<std::string>& servers,
    const std::shared_ptr<grpc::ChannelCredentials>& security,
    const std::string& secret, bool stock);

// Returns a function that makes such a channel to an address later.
std::function<std::shared_ptr<grpc::Channel>(const std::string&)> Connector(
    const std::shared_ptr<grpc::ChannelCredentials>& security,
    const std::string& secret, bool stock);

// Returns a text for the path of the channel: "shm (ring 1 MiB)", "tcp: ..."
// with the reason, or "http2". Joins the paths of several live connections by "
// + ".
std::string DescribePath(grpc::Channel& channel);

}  // namespace penstock::examples

#endif  // PENSTOCK_EXAMPLES_COMMON_CONNECTION_H_
