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

// "shm (ring 1 MiB)", "tcp: ..." with why, or "http2". Several live connections
// of one channel are joined by " + ".
std::string DescribePath(grpc::Channel& channel);

}  // namespace penstock::digits

#endif  // PENSTOCK_EXAMPLES_DIGITS_CONNECTION_H_
