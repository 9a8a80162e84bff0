// The ways that a test's calls can take, and how to make both sides take one.

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
  kVerbs,        // Penstock, over RDMA: where there is a device
  kTcp,          // Penstock's frames on the TCP connection
  kStockServer,  // HTTP/2, since the server is stock
  kStockClient,  // HTTP/2, since the client is stock
  kStock,        // HTTP/2, since both are stock: to compare the others with
};

// Returns "Shm", "Tcp", "StockServer" and so on.
std::string NameOf(Path path);
absl::optional<Path> PathOfName(const std::string& name);
std::ostream& operator<<(std::ostream& out, Path path);

// Returns whether Penstock carries the calls; only then can they be counted.
bool IsPenstock(Path path);

// Returns whether this is tools/rdma-vm, where tests use kVerbs only.
bool IsInVm();

// Returns the name that DescribePaths has for it.
std::string FabricOf(Path path);

// Does what the server side needs for `path`, before BuildAndStart.
void EnableFor(Path path, grpc::ServerBuilder* builder);

// Returns `credentials` as the client side needs them for `path`.
std::shared_ptr<grpc::ChannelCredentials> CredentialsFor(
    Path path, std::shared_ptr<grpc::ChannelCredentials> credentials);

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_PATH_H_
