// What each transport needs on either side, and how a run makes sure that the
// transport that it names carried it.

#ifndef PENSTOCK_BENCH_RPC_TRANSPORTS_H_
#define PENSTOCK_BENCH_RPC_TRANSPORTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "bench/rpc/cell.h"
#include "grpcpp/channel.h"
#include "penstock/penstock.h"

namespace penstock {
namespace bench {

// Returns the settings of one side; nothing for stock gRPC. They require the
// one fabric, so that no other is measured in its place. `device` is the RDMA
// device that verbs uses; empty: any.
absl::optional<Options> PenstockOptions(Transport transport,
                                        const std::string& device);

// Returns what a server at `host`, a name or a number, passes to
// AddListeningPort; empty for inproc. A UNIX socket is abstract, so that a
// killed server leaves no file.
std::string ListenAddress(Transport transport, const std::string& host);

// Returns what its client passes to CreateChannel, once the port is known.
std::string ConnectAddress(const std::string& listen_address, int port);

// Makes a channel with a connection of its own to `address`, not connected yet,
// and without a limit on message size. `device` as above. Not for inproc.
std::shared_ptr<grpc::Channel> MakeChannel(Transport transport,
                                           const std::string& address,
                                           const std::string& device);

// Returns OK if `transport` carried a channel with these connections, and else
// UNAVAILABLE, which names what carried it. Stock transports always pass.
absl::Status CheckPaths(Transport transport,
                        const std::vector<PathReport>& paths);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_TRANSPORTS_H_
