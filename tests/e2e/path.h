// The ways that a test's calls can go, and how to make both sides take one.

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
  kStockServer,  // HTTP/2, for the server is not Penstock's
  kStockClient,  // HTTP/2, for the client is not Penstock's
  kStock,        // HTTP/2, for neither is: what the others are compared with
};

// "Shm", "Tcp", "StockServer" and so on.
std::string NameOf(Path path);
absl::optional<Path> PathOfName(const std::string& name);
std::ostream& operator<<(std::ostream& out, Path path);

// Whether Penstock carries the calls, which then can be counted.
bool IsPenstock(Path path);

// Whether this is tools/rdma-vm, where tests take kVerbs and nothing else.
bool IsInVm();

// What DescribePaths calls it.
std::string FabricOf(Path path);

// What the server side does for `path` before BuildAndStart.
void EnableFor(Path path, grpc::ServerBuilder* builder);

// `credentials` as the client side uses them for `path`.
std::shared_ptr<grpc::ChannelCredentials> CredentialsFor(
    Path path, std::shared_ptr<grpc::ChannelCredentials> credentials);

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_PATH_H_
