#include "tests/e2e/path.h"

#include <cstdlib>
#include <utility>

#include "penstock/penstock.h"
#include "tests/e2e/adapter.h"

namespace penstock::e2e {
namespace {

// Returns explicit options for the path, so that a test does not depend on the
// environment.
Options OptionsOf(Path path) {
  Options options;
  options.policy = Policy::kPrefer;
  if (path == Path::kTcp) {
    options.fabrics = {Fabric::kTcp};
  } else if (path == Path::kVerbs) {
    options.fabrics = {Fabric::kVerbs, Fabric::kTcp};
  } else {
    options.fabrics = {Fabric::kShm, Fabric::kTcp};
  }
  return options;
}

}  // namespace

std::string NameOf(Path path) {
  switch (path) {
    case Path::kShm:
      return "Shm";
    case Path::kVerbs:
      return "Verbs";
    case Path::kTcp:
      return "Tcp";
    case Path::kStockServer:
      return "StockServer";
    case Path::kStockClient:
      return "StockClient";
    case Path::kStock:
      return "Stock";
  }
  return "";
}

absl::optional<Path> PathOfName(const std::string& name) {
  for (Path path : {Path::kShm, Path::kVerbs, Path::kTcp, Path::kStockServer,
                    Path::kStockClient, Path::kStock}) {
    if (NameOf(path) == name) return path;
  }
  return absl::nullopt;
}

std::ostream& operator<<(std::ostream& out, Path path) {
  return out << NameOf(path);
}

bool IsPenstock(Path path) {
  if (kIsEventEngine) return false;
  return path == Path::kShm || path == Path::kVerbs || path == Path::kTcp;
}

bool IsInVm() { return std::getenv("RDMA_VM") != nullptr; }

std::string FabricOf(Path path) {
  switch (path) {
    case Path::kShm:
      return "shm";
    case Path::kVerbs:
      return "verbs";
    case Path::kTcp:
      return "tcp";
    case Path::kStockServer:
    case Path::kStockClient:
    case Path::kStock:
      break;
  }
  return "http2";
}

void EnableFor(Path path, grpc::ServerBuilder* builder) {
  if (path == Path::kStockServer || path == Path::kStock) return;
  Enable(builder, OptionsOf(path));
}

std::shared_ptr<grpc::ChannelCredentials> CredentialsFor(
    Path path, std::shared_ptr<grpc::ChannelCredentials> credentials) {
  if (path == Path::kStockClient || path == Path::kStock) return credentials;
  return Credentials(std::move(credentials), OptionsOf(path));
}

}  // namespace penstock::e2e
