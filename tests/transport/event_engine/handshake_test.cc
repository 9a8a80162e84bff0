// Tests when connections with gRPC's own TLS move to RDMA, between two hosts
// with simulated devices. CMakeLists.txt builds this file, because Bazel's gRPC
// is older.

#include <memory>
#include <string>

#include "grpcpp/create_channel_posix.h"
#include "grpcpp/passive_listener.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "gtest/gtest.h"
#include "tests/e2e/certificates.h"
#include "tests/transport/event_engine/echo.h"
#include "tests/transport/event_engine/hosts.h"
#include "tests/transport/event_engine/user.h"
#include "transport/event_engine/introducer.h"

namespace penstock {
namespace event_engine {
namespace {

// A server without methods, whose connections the test accepts.
class Server {
 public:
  explicit Server(const std::shared_ptr<grpc::ServerCredentials>& credentials) {
    grpc::ServerBuilder builder;
    builder.experimental().AddPassiveListener(credentials, listener_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~Server() { server_->Shutdown(std::chrono::system_clock::now()); }

  OnEndpoint Accept() {
    return [this](absl::StatusOr<std::unique_ptr<EventEngine::Endpoint>> made) {
      EXPECT_TRUE(listener_->AcceptConnectedEndpoint(*std::move(made)).ok());
    };
  }

 private:
  grpc::CallbackGenericService service_;
  std::unique_ptr<grpc::experimental::PassiveListener> listener_;
  std::unique_ptr<grpc::Server> server_;
};

class HandshakeTest : public testing::TestWithParam<grpc_tls_version>,
                      protected Hosts {
 protected:
  void SetUp() override {
    if (!e2e::TestCertificates().has_value()) GTEST_SKIP() << "no openssl";
    settings_.fabrics = {Fabric::kVerbs, Fabric::kTcp};
    places_ = std::make_unique<MeetingPlaces>(settings_, Opener());
    places_->Open(server_address_, kServerPort);
  }

  std::shared_ptr<grpc::ServerCredentials> ServerCredentials() {
    grpc::SslServerCredentialsOptions options(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = certificates().authority.certificate;
    options.pem_key_cert_pairs.push_back(
        {certificates().server.key, certificates().server.certificate});
    return grpc::SslServerCredentials(options);
  }
  std::shared_ptr<grpc::ChannelCredentials> ClientCredentials(
      bool with_certificate) {
    grpc::experimental::TlsChannelCredentialsOptions options;
    options.set_max_tls_version(GetParam());
    options.set_check_call_host(false);
    options.set_certificate_verifier(
        std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
    std::vector<grpc::experimental::IdentityKeyCertPair> own;
    if (with_certificate) {
      own.push_back(
          {certificates().client.key, certificates().client.certificate});
    }
    provider_ =
        std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
            certificates().authority.certificate, own);
    options.set_certificate_provider(provider_);
    options.watch_root_certs();
    if (with_certificate) options.watch_identity_key_cert_pairs();
    return grpc::experimental::TlsCredentials(options);
  }
  // Returns a channel with one connection.
  std::shared_ptr<grpc::Channel> Connect(bool with_certificate) {
    std::unique_ptr<EventEngine::Endpoint> endpoint;
    WrapConnected(
        ClientSide(), GetCrew(), settings_,
        [&](absl::StatusOr<std::unique_ptr<EventEngine::Endpoint>> made) {
          endpoint = *std::move(made);
        },
        Opener());
    places_->WrapAccepted(ServerSide(), GetCrew(), server_->Accept());
    return grpc::experimental::CreateChannelFromEndpoint(
        std::move(endpoint), ClientCredentials(with_certificate),
        grpc::ChannelArguments());
  }

  static const e2e::Certificates& certificates() {
    return *e2e::TestCertificates();
  }

  Settings settings_;
  std::unique_ptr<MeetingPlaces> places_;
  std::shared_ptr<grpc::experimental::StaticDataCertificateProvider> provider_;
  std::unique_ptr<Server> server_;
};

TEST_P(HandshakeTest, AuthenticatedClientGetsAPath) {
  server_ = std::make_unique<Server>(ServerCredentials());
  const auto channel = Connect(/*with_certificate=*/true);
  EXPECT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() +
                                        absl::ToChronoSeconds(kPatience)));
  EXPECT_TRUE(WaitForPath("verbs")) << WaitForReason();
  const size_t up = up_->all().size(), down = down_->all().size();
  EXPECT_EQ(Echo(channel, std::string(100000, 'x')).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(up_->all().size(), up);
  EXPECT_EQ(down_->all().size(), down);
}

// The client may send its request for a path, because it trusts the server.
TEST_P(HandshakeTest, ClientWithoutACertificateGetsNone) {
  server_ = std::make_unique<Server>(ServerCredentials());
  const auto channel = Connect(/*with_certificate=*/false);
  EXPECT_EQ(Echo(channel, "hello").error_code(), grpc::StatusCode::UNAVAILABLE);
  while (!Describe(/*is_client=*/true).peer.empty()) {
    EXPECT_LE(api_->counts().qps, 1);
    absl::SleepFor(absl::Microseconds(100));
  }
  EXPECT_EQ(Describe(/*is_client=*/false).peer, "");
}

INSTANTIATE_TEST_SUITE_P(Versions, HandshakeTest,
                         testing::Values(grpc_tls_version::TLS1_2,
                                         grpc_tls_version::TLS1_3));

}  // namespace
}  // namespace event_engine
}  // namespace penstock
