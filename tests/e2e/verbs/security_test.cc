// Tests TLS with RDMA, which does not encrypt: the paths of data, and the
// information for gRPC.

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "gtest/gtest.h"
#include "tests/e2e/call.h"
#include "tests/e2e/certificates.h"
#include "tests/e2e/security/observer.h"
#include "tests/e2e/verbs/echo.h"
#include "tests/e2e/verbs/rig.h"

namespace penstock::e2e {
namespace {

using testing::HasSubstr;

constexpr char kNoSecurity[] = "security_level=TSI_SECURITY_NONE";
constexpr char kPrivacy[] = "security_level=TSI_PRIVACY_AND_INTEGRITY";

Options WithoutProtection(Options options = VerbsAt()) {
  options.data_protection = DataProtection::kNone;
  return options;
}

// The results of one call, and its path.
struct PathObservation : Observation {
  PathReport path;
};

class VerbsSecurityTest : public VerbsRig {
 protected:
  void SetUp() override {
    VerbsRig::SetUp();
    if (IsSkipped()) return;
    ASSERT_TRUE(TestCertificates().has_value()) << "no openssl command?";
  }
  ~VerbsSecurityTest() override { StopServing(); }

  // Makes one call over mutual TLS.
  PathObservation Observe(const Options& server, const Options& client) {
    seen_ = PathObservation();
    Serve(&observer_, server, ServerTls(true));
    auto channel = Connect(client, ClientTls(TestCertificates()->client));
    Call call;
    if (call_credentials_) call.set_credentials(call_credentials_);
    Empty response;
    seen_.status =
        TestService::NewStub(channel)->EmptyCall(&call, Empty(), &response);
    if (seen_.status.ok()) {
      seen_.of_server = Knowledge(*call.auth_context(), call.peer());
    }
    seen_.path = PathOf(channel.get());
    return seen_;
  }

  static void ExpectIdentities(const PathObservation& seen) {
    ASSERT_TRUE(seen.status.ok()) << seen.status.error_message();
    EXPECT_EQ(seen.of_client.identities.count("client.test"), 1u)
        << seen.of_client;
    EXPECT_EQ(seen.of_server.identities.count("penstock.test"), 1u)
        << seen.of_server;
    EXPECT_TRUE(seen.of_client.authenticated);
    EXPECT_TRUE(seen.of_server.authenticated);
  }

  static void ExpectTcpBecauseOfProtection(const PathObservation& seen) {
    ExpectIdentities(seen);
    EXPECT_EQ(seen.path.path, "tcp") << seen.path;
    EXPECT_THAT(seen.path.reason, HasSubstr("PENSTOCK_DATA_PROTECTION=none"));
  }

  std::shared_ptr<grpc::CallCredentials> call_credentials_;

 private:
  PathObservation seen_;
  Observer observer_{&seen_};
};

TEST_F(VerbsSecurityTest, InsecureConnectionsUseVerbs) {
  EchoService service;
  Serve(&service, VerbsAt());
  auto channel = Connect(VerbsAt());
  auto stub = TestService::NewStub(channel);
  EXPECT_TRUE(MakeEmptyCall(stub.get()).ok());
  EXPECT_EQ(PathOf(channel.get()).path, "verbs") << PathOf(channel.get());
  StopServing();
}

TEST_F(VerbsSecurityTest, MutualTlsStaysOnTcpAndSaysWhichSettingDecides) {
  const PathObservation seen = Observe(VerbsAt(), VerbsAt());
  ExpectTcpBecauseOfProtection(seen);
  EXPECT_TRUE(seen.of_client.Has(kPrivacy)) << seen.of_client;
  EXPECT_TRUE(seen.of_server.Has(kPrivacy)) << seen.of_server;
}

TEST_F(VerbsSecurityTest, WithoutProtectionPeersAreProvenAndNothingIsPromised) {
  const PathObservation seen =
      Observe(WithoutProtection(), WithoutProtection());
  EXPECT_EQ(seen.path.path, "verbs") << seen.path;
  ExpectIdentities(seen);
  EXPECT_TRUE(seen.of_client.Has(kNoSecurity)) << seen.of_client;
  EXPECT_TRUE(seen.of_server.Has(kNoSecurity)) << seen.of_server;
  EXPECT_FALSE(seen.of_client.Has(kPrivacy)) << seen.of_client;
  EXPECT_FALSE(seen.of_server.Has(kPrivacy)) << seen.of_server;
}

TEST_F(VerbsSecurityTest, OneSideAloneDoesNotTakeTheProtectionAway) {
  ExpectTcpBecauseOfProtection(Observe(VerbsAt(), WithoutProtection()));
  ExpectTcpBecauseOfProtection(Observe(WithoutProtection(), VerbsAt()));
}

TEST_F(VerbsSecurityTest, CredentialsThatWantPrivacyAreNotSentInTheClear) {
  call_credentials_ = Token("secret");
  const PathObservation bare =
      Observe(WithoutProtection(), WithoutProtection());
  EXPECT_EQ(bare.status.error_code(), grpc::StatusCode::UNAUTHENTICATED)
      << bare.status.error_message();
  EXPECT_EQ(bare.token, "");
  // Expects that a protected connection sends the credentials.
  const PathObservation safe = Observe(VerbsAt(), VerbsAt());
  EXPECT_TRUE(safe.status.ok()) << safe.status.error_message();
  EXPECT_EQ(safe.token, "secret");
}

TEST_F(VerbsSecurityTest, RequiredVerbsIsRefusedWhereItWouldExpose) {
  const PathObservation seen = Observe(VerbsAt(), OnlyVerbsAt());
  EXPECT_EQ(seen.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(seen.status.error_message(),
              HasSubstr("Penstock policy is \"require verbs\", but "));
  EXPECT_THAT(seen.status.error_message(),
              HasSubstr("PENSTOCK_DATA_PROTECTION=none"));
}

TEST_F(VerbsSecurityTest, RequiredVerbsIsHadWhereBothAllowIt) {
  const PathObservation seen = Observe(WithoutProtection(OnlyVerbsAt()),
                                       WithoutProtection(OnlyVerbsAt()));
  ExpectIdentities(seen);
  EXPECT_EQ(seen.path.path, "verbs") << seen.path;
}

TEST_F(VerbsSecurityTest, MessagesOfEachKindGoOverVerbsBesideTls) {
  EchoService service;
  Serve(&service, WithoutProtection(), ServerTls(true));
  auto channel =
      Connect(WithoutProtection(), ClientTls(TestCertificates()->client));
  auto stub = TestService::NewStub(channel);
  uint32_t number = 0;
  for (size_t bytes : {1, 1000, 20000, 100000, 2000000}) {
    const grpc::Status status = Echo(stub.get(), ++number, bytes);
    EXPECT_TRUE(status.ok()) << bytes << ": " << status.error_message();
  }
  EXPECT_EQ(PathOf(channel.get()).path, "verbs");
  EXPECT_EQ(PathOf(channel.get()).messages_sent, number);
  StopServing();
}

}  // namespace
}  // namespace penstock::e2e
