#include "tests/oracle/route.h"

#include "grpcpp/security/credentials.h"
#include "tests/e2e/adapter.h"

namespace penstock::oracle {
namespace {

Options With(std::vector<Fabric> fabrics,
             ShmSharing sharing = ShmSharing::kSameUid) {
  Options options;
  options.policy = Policy::kPrefer;
  options.fabrics = std::move(fabrics);
  options.shm_sharing = sharing;
  return options;
}

}  // namespace

void Route::Enable(grpc::ServerBuilder* builder) const {
  if (!stock) penstock::Enable(builder, options);
}

std::shared_ptr<grpc::ChannelCredentials> Route::Credentials() const {
  auto credentials = grpc::InsecureChannelCredentials();
  return stock ? credentials : penstock::Credentials(credentials, options);
}

const Route* FindRoute(const std::string& name) {
  static const std::vector<Route> routes = {
      {"stock", true, "http2", {}},
      {"shm", false, "shm", With({Fabric::kShm, Fabric::kTcp})},
      {"shm-copy", false, "shm",
       With({Fabric::kShm, Fabric::kTcp}, ShmSharing::kCopy)},
      {"tcp", false, e2e::kIsEventEngine ? "http2" : "tcp",
       With({Fabric::kTcp})},
      {"verbs", false, "verbs", With({Fabric::kVerbs, Fabric::kTcp})},
  };
  for (const Route& route : routes) {
    if (route.name == name) return &route;
  }
  return nullptr;
}

}  // namespace penstock::oracle
