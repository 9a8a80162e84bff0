#include "tests/oracle/route.h"

#include "grpcpp/security/credentials.h"
#include "tests/e2e/adapter.h"
#include "tests/e2e/certificates.h"

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

std::shared_ptr<grpc::ServerCredentials> Route::ServerCredentials() const {
  if (!tls) return grpc::InsecureServerCredentials();
  const e2e::Identity& server = e2e::TestCertificates().value().server;
  grpc::SslServerCredentialsOptions ssl;
  ssl.pem_key_cert_pairs = {{server.key, server.certificate}};
  return grpc::SslServerCredentials(ssl);
}

std::shared_ptr<grpc::ChannelCredentials> Route::Credentials() const {
  auto credentials = grpc::InsecureChannelCredentials();
  if (tls) {
    grpc::SslCredentialsOptions ssl;
    ssl.pem_root_certs = e2e::TestCertificates().value().authority.certificate;
    credentials = grpc::SslCredentials(ssl);
  }
  return stock ? credentials : penstock::Credentials(credentials, options);
}

const Route* FindRoute(const std::string& name) {
  static const std::vector<Route> routes = {
      {"stock", true, "http2", {}},
      {"stock-tls", true, "http2", {}, true},
      {"shm", false, "shm", With({Fabric::kShm, Fabric::kTcp})},
      {"shm-copy", false, "shm",
       With({Fabric::kShm, Fabric::kTcp}, ShmSharing::kCopy)},
      {"tcp", false, e2e::kIsEventEngine ? "http2" : "tcp",
       With({Fabric::kTcp})},
      {"tcp-tls", false, e2e::kIsEventEngine ? "http2" : "tcp",
       With({Fabric::kTcp}), true},
      {"verbs", false, "verbs", With({Fabric::kVerbs, Fabric::kTcp})},
  };
  for (const Route& route : routes) {
    if (route.name == name) return &route;
  }
  return nullptr;
}

}  // namespace penstock::oracle
