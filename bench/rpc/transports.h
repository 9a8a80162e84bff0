// What each transport needs on either side, and how a run makes sure that the
// transport it names is the one that carried it.

#ifndef PENSTOCK_BENCH_RPC_TRANSPORTS_H_
#define PENSTOCK_BENCH_RPC_TRANSPORTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "bench/rpc/cell.h"
#include "grpcpp/channel.h"
#include "transport/penstock.h"

namespace penstock {
namespace bench {

// The settings of one side; nothing for stock gRPC. They require the one
// fabric, so that another is refused and never measured in its place. `device`
// is the RDMA device that verbs uses; empty: any.
absl::optional<Options> PenstockOptions(Transport transport,
                                        const std::string& device);

// What a server at `host`, a name or a number, passes to AddListeningPort;
// empty for inproc. A UNIX socket is abstract, so that a killed server leaves
// no file.
std::string ListenAddress(Transport transport, const std::string& host);

// What its client passes to CreateChannel, once the port is known.
std::string ConnectAddress(const std::string& listen_address, int port);

// A channel of its own connection to `address`, not connected yet, with no
// limit on message size; `device` as above. Not for inproc.
std::shared_ptr<grpc::Channel> MakeChannel(Transport transport,
                                           const std::string& address,
                                           const std::string& device);

// OK if a channel with these connections was carried by `transport`;
// UNAVAILABLE with what carried it instead. Stock transports always pass.
absl::Status CheckPaths(Transport transport,
                        const std::vector<PathReport>& paths);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_TRANSPORTS_H_
