// The settings of client and server for each transport, and the check that a
// run used the requested transport.

#ifndef PENSTOCK_BENCH_RPC_SETUP_TRANSPORTS_H_
#define PENSTOCK_BENCH_RPC_SETUP_TRANSPORTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "bench/rpc/message/cell.h"
#include "grpcpp/channel.h"
#include "grpcpp/security/server_credentials.h"
#include "penstock/penstock.h"

namespace penstock {
namespace bench {

enum class Side { kClient, kServer };

// Returns the settings of one side, or nothing for stock gRPC. If both sides
// are Penstock's, the settings require one fabric, so that no other fabric is
// measured instead. `device` is the RDMA device for verbs; empty means any.
absl::optional<Options> PenstockOptions(Transport transport, Side side,
                                        const std::string& device);

// Returns the address for AddListeningPort of a server at `host`, a name or an
// address. Empty for inproc. A UNIX socket is abstract, so that a killed server
// leaves no file.
std::string ListenAddress(Transport transport, const std::string& host);

// Returns the address for the client's CreateChannel, once the port is known.
std::string ConnectAddress(const std::string& listen_address, int port);

// Makes an unconnected channel to `address` with its own connection, without a
// limit on message size. See PenstockOptions() for `device`. With TLS, the
// server has `identity`; see MakeIdentity(). Not for inproc.
std::shared_ptr<grpc::Channel> MakeChannel(Transport transport,
                                           const std::string& address,
                                           const std::string& device,
                                           const std::string& identity = "");

// Returns the credentials for AddListeningPort.
std::shared_ptr<grpc::ServerCredentials> ListenCredentials(
    Transport transport, const std::string& identity);

// Returns OK if these connections of a channel used `transport`. Otherwise
// returns UNAVAILABLE with the actual path. Stock transports always pass.
absl::Status CheckPaths(Transport transport,
                        const std::vector<PathReport>& paths);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_SETUP_TRANSPORTS_H_
