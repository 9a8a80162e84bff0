// The peer's identity, and the flow of credentials. Each test makes the same
// call over stock gRPC for comparison.

#include <memory>
#include <string>
#include <utility>

#include "grpc/grpc_security_constants.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "gtest/gtest.h"
#include "tests/e2e/certificates.h"
#include "tests/e2e/knowledge.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

// The results of one call.
struct Observation {
  grpc::StatusCode code = grpc::StatusCode::UNKNOWN;
  std::string message;
  Knowledge of_client;  // at the server
  Knowledge of_server;  // at the client
  std::string token;    // the call's credentials, at the server
};

class Observer final : public TestService::Service {
 public:
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

std::shared_ptr<grpc::CallCredentials> Token(const std::string& token) {
  return grpc::MetadataCredentialsFromPlugin(
      std::make_unique<TokenPlugin>(token));
}

class SecurityTest : public testing::TestWithParam<Path> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(TestCertificates().has_value()) << "no openssl command?";
  }

  static std::shared_ptr<grpc::ServerCredentials> ServerTls(bool mutual) {
    grpc::SslServerCredentialsOptions options(
        mutual ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
               : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
    options.pem_root_certs = TestCertificates()->authority.certificate;
    options.pem_key_cert_pairs.push_back(
        {TestCertificates()->server.key,
         TestCertificates()->server.certificate});
    return grpc::SslServerCredentials(options);
  }

  static std::shared_ptr<grpc::ChannelCredentials> ClientTls(
      const Identity& identity = {}) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = TestCertificates()->authority.certificate;
    options.pem_private_key = identity.key;
    options.pem_cert_chain = identity.certificate;
    return grpc::SslCredentials(options);
  }

  // Makes one call over `path`. A successful call must have used the path.
  Observation Observe(Path path) {
    Observation seen;
    Observer service(&seen);
    Stack stack(path);
    stack.Secure(server_, channel_);
    stack.Serve(&service);
    Call call;
    if (call_credentials_) call.set_credentials(call_credentials_);
    auto channel = stack.NewChannel(arguments_);
    Empty response;
    const grpc::Status status =
        TestService::NewStub(channel)->EmptyCall(&call, Empty(), &response);
    seen.code = status.error_code();
    seen.message = status.error_message();
    if (status.ok()) {
      stack.ExpectTraffic(*channel, 1, 1);
      seen.of_server = Knowledge(*call.auth_context(), call.peer());
    }
    return seen;
  }

  // Returns the observation, which must equal stock gRPC's.
  Observation ExpectAsStock() {
    Observation stock = Observe(Path::kStock);
    const Observation seen = Observe(GetParam());
    EXPECT_EQ(seen.code, stock.code) << seen.message;
    EXPECT_EQ(seen.of_client, stock.of_client);
    EXPECT_EQ(seen.of_server, stock.of_server);
    EXPECT_EQ(seen.token, stock.token);
    return stock;
  }

  std::shared_ptr<grpc::ServerCredentials> server_ =
      grpc::InsecureServerCredentials();
  std::shared_ptr<grpc::ChannelCredentials> channel_ =
      grpc::InsecureChannelCredentials();
  std::shared_ptr<grpc::CallCredentials> call_credentials_;
  grpc::ChannelArguments arguments_;
};

TEST_P(SecurityTest, InsecurePeersKnowAsMuchAsInStock) {
  const Observation stock = ExpectAsStock();
  EXPECT_EQ(stock.code, grpc::StatusCode::OK) << stock.message;
  EXPECT_EQ(stock.of_client.peer, "ipv4:127.0.0.1");
}

TEST_P(SecurityTest, ClientKnowsTheServerByTls) {
  server_ = ServerTls(false);
  channel_ = ClientTls();
  const Observation stock = ExpectAsStock();
  EXPECT_EQ(stock.code, grpc::StatusCode::OK) << stock.message;
  EXPECT_TRUE(stock.of_server.authenticated);
  EXPECT_FALSE(stock.of_client.authenticated);
  EXPECT_TRUE(stock.of_server.Has("security_level=TSI_PRIVACY_AND_INTEGRITY"));
}

TEST_P(SecurityTest, BothKnowEachOtherByMutualTls) {
  server_ = ServerTls(true);
  channel_ = ClientTls(TestCertificates()->client);
  const Observation stock = ExpectAsStock();
  EXPECT_EQ(stock.code, grpc::StatusCode::OK) << stock.message;
  EXPECT_EQ(stock.of_client.identities.count("client.test"), 1u);
  EXPECT_TRUE(stock.of_client.Has("x509_common_name=client.test"));
}

TEST_P(SecurityTest, ClientThatNobodyTrustsIsRefused) {
  server_ = ServerTls(true);
  channel_ = ClientTls(TestCertificates()->impostor);
  EXPECT_EQ(ExpectAsStock().code, grpc::StatusCode::UNAVAILABLE);
}

TEST_P(SecurityTest, ClientWithoutACertificateIsRefused) {
  server_ = ServerTls(true);
  channel_ = ClientTls();
  EXPECT_EQ(ExpectAsStock().code, grpc::StatusCode::UNAVAILABLE);
}

TEST_P(SecurityTest, ServerIsKnownByTheNameThatTheClientExpects) {
  server_ = ServerTls(false);
  channel_ = ClientTls();
  arguments_.SetSslTargetNameOverride("penstock.test");
  EXPECT_EQ(ExpectAsStock().code, grpc::StatusCode::OK);
  arguments_ = grpc::ChannelArguments();
  arguments_.SetSslTargetNameOverride("other.test");
  EXPECT_EQ(ExpectAsStock().code, grpc::StatusCode::UNAVAILABLE);
}

TEST_P(SecurityTest, InsecureClientIsRefusedByTls) {
  server_ = ServerTls(false);
  EXPECT_EQ(ExpectAsStock().code, grpc::StatusCode::UNAVAILABLE);
}

TEST_P(SecurityTest, TlsClientRefusesAnInsecureServer) {
  channel_ = ClientTls();
  EXPECT_EQ(ExpectAsStock().code, grpc::StatusCode::UNAVAILABLE);
}

TEST_P(SecurityTest, CredentialsOfACallReachTheServer) {
  server_ = ServerTls(false);
  channel_ = ClientTls();
  call_credentials_ = Token("of the call");
  EXPECT_EQ(ExpectAsStock().token, "of the call");
}

TEST_P(SecurityTest, CredentialsOfTheChannelGoWithEachCall) {
  server_ = ServerTls(false);
  channel_ =
      grpc::CompositeChannelCredentials(ClientTls(), Token("of the channel"));
  EXPECT_EQ(ExpectAsStock().token, "of the channel");
}

// CompositeChannelCredentials around Credentials(), not inside.
TEST_P(SecurityTest, CredentialsOfTheChannelMayBeAddedLast) {
  Observation seen;
  Observer service(&seen);
  Stack stack(GetParam());
  stack.Secure(ServerTls(false), ClientTls());
  stack.Serve(&service);
  auto channel = grpc::CreateChannel(
      stack.address(),
      grpc::CompositeChannelCredentials(CredentialsFor(GetParam(), ClientTls()),
                                        Token("added last")));
  const grpc::Status status =
      MakeEmptyCall(TestService::NewStub(channel).get());
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(seen.token, "added last");
  stack.ExpectTraffic(*channel, 1, 1);
}

TEST_P(SecurityTest, CredentialsOfACallDoNotGoOverAnInsecureChannel) {
  call_credentials_ = Token("secret");
  const Observation stock = ExpectAsStock();
  EXPECT_NE(stock.code, grpc::StatusCode::OK);
  EXPECT_EQ(stock.token, "");
}

TEST_P(SecurityTest, MessagesOfEachKindGoOverTls) {
  TestServiceImpl service;
  Stack stack(GetParam());
  stack.Secure(ServerTls(true), ClientTls(TestCertificates()->client));
  stack.Serve(&service);
  auto stub = TestService::NewStub(stack.channel());
  Call call;
  auto stream = stub->FullDuplexCall(&call);
  for (size_t bytes : {0, 1000, 20000, 100000, 2000000}) {
    EXPECT_TRUE(PingPong(stream.get(), bytes)) << bytes;
  }
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_TRUE(stream->Finish().ok());
  stack.ExpectTraffic(5, 5);
}

INSTANTIATE_TEST_SUITE_P(Over, SecurityTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
