// The paths that calls of a test use, and functions that make both sides use
// one of them.

#ifndef PENSTOCK_TESTS_E2E_PATH_H_
#define PENSTOCK_TESTS_E2E_PATH_H_

#include <memory>
#include <ostream>
#include <string>

#include "absl/types/optional.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/server_builder.h"

namespace penstock::e2e {

enum class Path {
  kShm,          // Penstock, over shared memory
  kVerbs,        // Penstock, over RDMA; needs a device
  kTcp,          // Penstock's frames on the TCP connection
  kStockServer,  // HTTP/2, because the server is stock
  kStockClient,  // HTTP/2, because the client is stock
  kStock,        // HTTP/2 between stock sides, for comparison
};

// Returns "Shm", "Tcp", "StockServer" and so on.
std::string NameOf(Path path);
absl::optional<Path> PathOfName(const std::string& name);
std::ostream& operator<<(std::ostream& out, Path path);

// Returns true if the messages travel in frames of Penstock, which counts them.
bool IsPenstock(Path path);

// Returns true in tools/rdma-vm, where tests use only kVerbs.
bool IsInVm();

// Returns the name of the path in DescribePaths().
std::string FabricOf(Path path);

// Prepares the server side for `path`. Call it before BuildAndStart().
void EnableFor(Path path, grpc::ServerBuilder* builder);

// Returns the client's credentials for `path`, based on `credentials`.
std::shared_ptr<grpc::ChannelCredentials> CredentialsFor(
    Path path, std::shared_ptr<grpc::ChannelCredentials> credentials);

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_PATH_H_
