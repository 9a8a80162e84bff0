// The peer's identity and the credentials of a call, as both sides see them.

#ifndef PENSTOCK_TESTS_E2E_SECURITY_OBSERVER_H_
#define PENSTOCK_TESTS_E2E_SECURITY_OBSERVER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "grpc/grpc_security_constants.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_context.h"
#include "tests/e2e/certificates.h"
#include "tests/e2e/security/knowledge.h"
#include "tests/e2e/test_service.h"

namespace penstock::e2e {

// The results of one call.
struct Observation {
  grpc::Status status;
  Knowledge of_client;  // at the server
  Knowledge of_server;  // at the client
  std::string token;    // the call's credentials, at the server
};

// Records what the server knows of the client of each EmptyCall().
class Observer final : public TestService::Service {
 public:
  // Makes an observer that writes to `seen`, which must outlive this object.
  explicit Observer(Observation* seen) : seen_(seen) {}

  grpc::Status EmptyCall(grpc::ServerContext* context, const Empty*,
                         Empty*) override {
    seen_->of_client = Knowledge(*context->auth_context(), context->peer());
    auto token = context->client_metadata().find("x-token");
    if (token != context->client_metadata().end()) {
      seen_->token.assign(token->second.data(), token->second.size());
    }
    return grpc::Status::OK;
  }

 private:
  Observation* const seen_;
};

// Credentials of calls, which gRPC sends only over a private connection.
class TokenPlugin final : public grpc::MetadataCredentialsPlugin {
 public:
  explicit TokenPlugin(std::string token) : token_(std::move(token)) {}

  grpc::Status GetMetadata(
      grpc::string_ref service_url, grpc::string_ref method_name,
      const grpc::AuthContext& channel_context,
      std::multimap<std::string, std::string>* metadata) override {
    metadata->emplace("x-token", token_);
    return grpc::Status::OK;
  }

 private:
  const std::string token_;
};

inline std::shared_ptr<grpc::CallCredentials> Token(const std::string& token) {
  return grpc::MetadataCredentialsFromPlugin(
      std::make_unique<TokenPlugin>(token));
}

// Returns the test server's credentials. `mutual`: clients must show a
// certificate. Requires TestCertificates().
inline std::shared_ptr<grpc::ServerCredentials> ServerTls(bool mutual) {
  grpc::SslServerCredentialsOptions options(
      mutual ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
             : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  options.pem_root_certs = TestCertificates()->authority.certificate;
  options.pem_key_cert_pairs.push_back(
      {TestCertificates()->server.key, TestCertificates()->server.certificate});
  return grpc::SslServerCredentials(options);
}

// Returns credentials of a client that trusts the test authority and shows
// `identity`, or no certificate.
inline std::shared_ptr<grpc::ChannelCredentials> ClientTls(
    const Identity& identity = {}) {
  return grpc::SslCredentials({TestCertificates()->authority.certificate,
                               identity.key, identity.certificate});
}

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_SECURITY_OBSERVER_H_
