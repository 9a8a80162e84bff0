// Tests the peer's identity, and the flow of credentials. Each test makes the
// same call over stock gRPC for comparison.

#include <memory>
#include <string>

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "gtest/gtest.h"
#include "tests/e2e/certificates.h"
#include "tests/e2e/security/observer.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

class SecurityTest : public testing::TestWithParam<Path> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(TestCertificates().has_value()) << "no openssl command?";
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
    seen.status =
        TestService::NewStub(channel)->EmptyCall(&call, Empty(), &response);
    if (seen.status.ok()) {
      stack.ExpectTraffic(*channel, 1, 1);
      seen.of_server = Knowledge(*call.auth_context(), call.peer());
    }
    return seen;
  }

  // Returns the observation, which must equal stock gRPC's.
  Observation ExpectAsStock() {
    Observation stock = Observe(Path::kStock);
    const Observation seen = Observe(GetParam());
    EXPECT_EQ(seen.status.error_code(), stock.status.error_code())
        << seen.status.error_message();
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
  EXPECT_EQ(stock.status.error_code(), grpc::StatusCode::OK)
      << stock.status.error_message();
  EXPECT_EQ(stock.of_client.peer, "ipv4:127.0.0.1");
}

TEST_P(SecurityTest, ClientKnowsTheServerByTls) {
  server_ = ServerTls(false);
  channel_ = ClientTls();
  const Observation stock = ExpectAsStock();
  EXPECT_EQ(stock.status.error_code(), grpc::StatusCode::OK)
      << stock.status.error_message();
  EXPECT_TRUE(stock.of_server.authenticated);
  EXPECT_FALSE(stock.of_client.authenticated);
  EXPECT_TRUE(stock.of_server.Has("security_level=TSI_PRIVACY_AND_INTEGRITY"));
}

TEST_P(SecurityTest, BothKnowEachOtherByMutualTls) {
  server_ = ServerTls(true);
  channel_ = ClientTls(TestCertificates()->client);
  const Observation stock = ExpectAsStock();
  EXPECT_EQ(stock.status.error_code(), grpc::StatusCode::OK)
      << stock.status.error_message();
  EXPECT_EQ(stock.of_client.identities.count("client.test"), 1u);
  EXPECT_TRUE(stock.of_client.Has("x509_common_name=client.test"));
}

TEST_P(SecurityTest, ClientThatNobodyTrustsIsRefused) {
  server_ = ServerTls(true);
  channel_ = ClientTls(TestCertificates()->impostor);
  EXPECT_EQ(ExpectAsStock().status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_P(SecurityTest, ClientWithoutACertificateIsRefused) {
  server_ = ServerTls(true);
  channel_ = ClientTls();
  EXPECT_EQ(ExpectAsStock().status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_P(SecurityTest, ServerIsKnownByTheNameThatTheClientExpects) {
  server_ = ServerTls(false);
  channel_ = ClientTls();
  arguments_.SetSslTargetNameOverride("penstock.test");
  EXPECT_EQ(ExpectAsStock().status.error_code(), grpc::StatusCode::OK);
  arguments_ = grpc::ChannelArguments();
  arguments_.SetSslTargetNameOverride("other.test");
  EXPECT_EQ(ExpectAsStock().status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_P(SecurityTest, InsecureClientIsRefusedByTls) {
  server_ = ServerTls(false);
  EXPECT_EQ(ExpectAsStock().status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_P(SecurityTest, TlsClientRefusesAnInsecureServer) {
  channel_ = ClientTls();
  EXPECT_EQ(ExpectAsStock().status.error_code(), grpc::StatusCode::UNAVAILABLE);
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

// Tests CompositeChannelCredentials around Credentials(), instead of inside.
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
  // The event engine warns, and leaves the channel to stock gRPC.
  if (!kIsEventEngine) stack.ExpectTraffic(*channel, 1, 1);
}

TEST_P(SecurityTest, CredentialsOfACallDoNotGoOverAnInsecureChannel) {
  call_credentials_ = Token("secret");
  const Observation stock = ExpectAsStock();
  EXPECT_NE(stock.status.error_code(), grpc::StatusCode::OK);
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
