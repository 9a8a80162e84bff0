// Channels to the parameter servers, and what carries them.

#ifndef PENSTOCK_EXAMPLES_DIGITS_CONNECTION_H_
#define PENSTOCK_EXAMPLES_DIGITS_CONNECTION_H_

#include <memory>
#include <string>
#include <vector>

#include "grpcpp/channel.h"

namespace penstock::digits {

// One channel for each address, over Penstock or, `stock`, without it.
std::vector<std::shared_ptr<grpc::Channel>> Connect(
    const std::vector<std::string>& servers, bool stock);

// "shm (...)", "tcp: ...", or "http2 (stock gRPC)". Several live connections
// of one channel are joined by " + ".
std::string DescribePath(grpc::Channel& channel);

}  // namespace penstock::digits

#endif  // PENSTOCK_EXAMPLES_DIGITS_CONNECTION_H_
