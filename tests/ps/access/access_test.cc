// Tests permissions by certificate and by secret, over stock gRPC and over
// Penstock.

#include "ps/access/access.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "gtest/gtest.h"
#include "tensor_service/calls.h"
#include "tests/ps/access/certificates.h"
#include "tests/ps/access/guarded_service.h"

namespace penstock::ps {
namespace {

using namespace std::string_literals;
using grpc::StatusCode;
using testing::Empty;
using testing::Guarded;

constexpr absl::Duration kTimeout = absl::Seconds(60);

const Authority& TestAuthority() {
  static const auto* const authority = new Authority();
  return *authority;
}

std::shared_ptr<grpc::ServerCredentials> ServerTls(bool mutual = true) {
  grpc::SslServerCredentialsOptions options(
      mutual ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
             : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  const Bearer self = TestAuthority().Issue({"", {}, {"server.test"}});
  options.pem_root_certs = TestAuthority().certificate();
  options.pem_key_cert_pairs.push_back({self.key, self.certificate});
  return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> Tls() {
  return grpc::SslCredentials({TestAuthority().certificate(), "", ""});
}

std::shared_ptr<grpc::ChannelCredentials> TlsOf(const CertificateNames& names) {
  const Bearer self = TestAuthority().Issue(names);
  return grpc::SslCredentials(
      {TestAuthority().certificate(), self.key, self.certificate});
}

AccessPolicy RulesOf(const std::string& text) {
  AccessPolicy policy;
  policy.path = "/etc/access";
  auto rules = ParseRules(text, policy.path);
  EXPECT_TRUE(rules.ok()) << rules.status();
  if (rules.ok()) policy.rules = *std::move(rules);
  return policy;
}

AccessPolicy SecretsOf(const std::vector<std::string>& secrets) {
  AccessPolicy policy;
  policy.secrets = SecretDigests(secrets);
  return policy;
}

void SetUp(grpc::ClientContext* context) {
  context->set_deadline(tensor::DeadlineAfter(kTimeout));
  context->set_wait_for_ready(true);
}

using Method = grpc::Status (Guarded::Stub::*)(grpc::ClientContext*,
                                               const Empty&, Empty*);

grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel, Method method,
                  const std::string& authorization = "") {
  grpc::ClientContext context;
  SetUp(&context);
  if (!authorization.empty()) {
    context.AddMetadata("authorization", authorization);
  }
  Empty reply;
  Guarded::Stub stub(channel);
  return (stub.*method)(&context, Empty(), &reply);
}

grpc::Status Attend(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  SetUp(&context);
  Empty reply;
  const auto writer = Guarded::NewStub(channel)->Attend(&context, &reply);
  writer->Write(Empty());
  writer->WritesDone();
  return writer->Finish();
}

// Makes a call with a raw message, as the parameter server's clients send
// tensors.
absl::Status CallRaw(const std::shared_ptr<grpc::Channel>& channel) {
  const std::string tensor(1 << 20, 't');
  const grpc::Slice slice(tensor);
  tensor::CallQueue calls;
  calls.Start(channel, "/penstock.ps.testing.Guarded/Train",
              grpc::ByteBuffer(&slice, 1), kTimeout);
  return calls.Wait().front().status;
}

class AccessTest : public ::testing::TestWithParam<Way> {
 protected:
  // Expects that calls over `channel` have the permission `most` and all lower
  // permissions. Expects that all other calls are refused with `otherwise`. 0
  // means no permission.
  static void ExpectPermissions(const std::shared_ptr<grpc::Channel>& channel,
                                int most, StatusCode otherwise) {
    const auto expect = [&](int level, const char* method,
                            const grpc::Status& status) {
      EXPECT_EQ(status.error_code(), most >= level ? StatusCode::OK : otherwise)
          << method << " " << status.error_message();
    };
    expect(1, "Read", Call(channel, &Guarded::Stub::Read));
    expect(2, "Train", Call(channel, &Guarded::Stub::Train));
    expect(2, "raw", tensor::ToGrpc(CallRaw(channel)));
    expect(2, "Attend", Attend(channel));
    expect(3, "Administer", Call(channel, &Guarded::Stub::Administer));
  }
  static void ExpectDenied(const std::shared_ptr<grpc::Channel>& channel,
                           int most) {
    ExpectPermissions(channel, most, StatusCode::PERMISSION_DENIED);
  }
  static void ExpectUnknown(const std::shared_ptr<grpc::Channel>& channel) {
    ExpectPermissions(channel, 0, StatusCode::UNAUTHENTICATED);
  }
};

TEST_P(AccessTest, ByTheNamesOfTheCertificate) {
  Access access(RulesOf("train uri:spiffe://org/trainer/*\n"
                        "read dns:*.serving.example\n"
                        "administer cn:On call\n"),
                true);
  const GuardedServer server(GetParam(), &access, ServerTls());
  const auto expect = [&](const CertificateNames& names, int most) {
    SCOPED_TRACE(absl::StrCat(names.common_name, " ",
                              names.uris.empty() ? "" : names.uris[0], " ",
                              names.dns.empty() ? "" : names.dns[0]));
    ExpectDenied(server.Connect(TlsOf(names)), most);
  };
  expect({"", {"spiffe://org/trainer/1"}, {}}, 2);
  expect({"t", {"spiffe://org/trainer/1"}, {"a.serving.example"}}, 2);
  expect({"", {}, {"other.example", "A.Serving.Example"}}, 1);
  expect({"On call", {}, {}}, 3);
  // Expects no permission for certificates that the authority has signed but no
  // rule names.
  expect({"", {"spiffe://org/reader/1"}, {}}, 0);
  expect({"stranger", {}, {}}, 0);
  expect({"", {}, {}}, 0);
  // Expects no permission for names that look like patterns, or like names of
  // another kind.
  expect({"On call", {}, {"stranger.example"}}, 0);
  expect({"spiffe://org/trainer/1", {}, {}}, 0);
  expect({"*", {}, {}}, 0);
  expect({"", {}, {"*.serving.example"}}, 0);
  expect({"", {}, {"spiffe://org/trainer/1"}}, 0);
  expect({"", {"spiffe://org/trainer/1", "spiffe://org/other"}, {}}, 0);
}

TEST_P(AccessTest, ANulEndsNoName) {
  Access access(RulesOf("train uri:spiffe://org/trainer\n"
                        "train dns:trainer.example\ntrain cn:trainer"),
                true);
  const GuardedServer server(GetParam(), &access, ServerTls());
  for (const CertificateNames& names :
       {CertificateNames{"", {"spiffe://org/trainer\0/evil"s}, {}},
        CertificateNames{"", {}, {"trainer.example\0.evil.example"s}},
        CertificateNames{"trainer\0evil"s, {}, {}}}) {
    ExpectDenied(server.Connect(TlsOf(names)), 0);
  }
  EXPECT_TRUE(
      Call(server.Connect(TlsOf({"trainer", {}, {}})), &Guarded::Stub::Train)
          .ok());
}

TEST_P(AccessTest, RefusalsNameThePeerAndTheRemedy) {
  Access access(RulesOf("\nread uri:spiffe://org/*\n"), true);
  const GuardedServer server(GetParam(), &access, ServerTls());
  const grpc::Status refused =
      Call(server.Connect(TlsOf({"", {"spiffe://org/a"}, {}})),
           &Guarded::Stub::Train);
  EXPECT_EQ(refused.error_message(),
            "train: refused to uri:spiffe://org/a, which may only read by line "
            "2 of /etc/access; this line in that file would permit it: 'train "
            "uri:spiffe://org/a'");
}

TEST_P(AccessTest, ACertificateWithoutNamesIsOne) {
  Access access(RulesOf("train any"), true);
  const GuardedServer server(GetParam(), &access, ServerTls());
  ExpectDenied(server.Connect(TlsOf({"", {}, {}})), 2);
}

TEST_P(AccessTest, WhoShowsNoCertificateIsNobody) {
  Access access(RulesOf("administer any"), true);
  const GuardedServer tls(GetParam(), &access, ServerTls(/*mutual=*/false));
  ExpectUnknown(tls.Connect(Tls()));
  const GuardedServer insecure(GetParam(), &access,
                               grpc::InsecureServerCredentials());
  ExpectUnknown(insecure.Connect(grpc::InsecureChannelCredentials()));
}

TEST_P(AccessTest, WithoutAPolicyEachPeerMayDoAll) {
  Access access({}, false);
  const GuardedServer tls(GetParam(), &access, ServerTls());
  ExpectDenied(tls.Connect(TlsOf({"a", {}, {}})), 3);
  const GuardedServer insecure(GetParam(), &access,
                               grpc::InsecureServerCredentials());
  ExpectDenied(insecure.Connect(grpc::InsecureChannelCredentials()), 3);
}

const std::string kOld(kMinSecretBytes, 'o');
const std::string kNew = std::string(kMaxSecretBytes - 2, 'n') + "==";

TEST_P(AccessTest, BySecretWithoutTls) {
  Access access(SecretsOf({kNew}), false);
  const GuardedServer server(GetParam(), &access,
                             grpc::InsecureServerCredentials());
  const auto insecure = grpc::InsecureChannelCredentials();
  ExpectUnknown(server.Connect(insecure));
  ExpectUnknown(server.Connect(insecure, kOld));
  ExpectUnknown(server.Connect(insecure, kNew + "x"));
  const auto channel = server.Connect(insecure, kNew);
  ExpectUnknown(server.Connect(insecure));
  ExpectDenied(channel, 3);
  // Makes three calls. From the third call on, a connection sends numbers for
  // metadata that it has sent before.
  ExpectDenied(channel, 3);
}

TEST_P(AccessTest, ASecretIsSentWithAnyClient) {
  Access access(SecretsOf({kOld}), false);
  const GuardedServer server(GetParam(), &access,
                             grpc::InsecureServerCredentials());
  const auto channel = server.Connect(grpc::InsecureChannelCredentials());
  EXPECT_TRUE(Call(channel, &Guarded::Stub::Read, "bearer " + kOld).ok());
  EXPECT_EQ(Call(channel, &Guarded::Stub::Read, "Basic " + kOld).error_code(),
            StatusCode::UNAUTHENTICATED);
  // Adds a second secret, next to the one that SendSecret() adds. The call must
  // be refused.
  const auto sending = server.Connect(grpc::InsecureChannelCredentials(), kOld);
  EXPECT_EQ(Call(sending, &Guarded::Stub::Read, "Bearer " + kOld).error_code(),
            StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(Call(sending, &Guarded::Stub::Read).ok());
}

TEST_P(AccessTest, AHugeSecretCostsItsCallAtMost) {
  Access access(SecretsOf({kOld}), false);
  const GuardedServer server(GetParam(), &access,
                             grpc::InsecureServerCredentials());
  const auto insecure = grpc::InsecureChannelCredentials();
  const auto hostile = server.Connect(insecure);
  EXPECT_FALSE(
      Call(hostile, &Guarded::Stub::Read, "Bearer " + std::string(1 << 20, 's'))
          .ok());
  EXPECT_TRUE(Call(server.Connect(insecure, kOld), &Guarded::Stub::Read).ok());
}

TEST_P(AccessTest, ASecretChangesWithoutAGap) {
  Access access(SecretsOf({kOld}), false);
  const GuardedServer server(GetParam(), &access,
                             grpc::InsecureServerCredentials());
  const auto insecure = grpc::InsecureChannelCredentials();
  const auto before = server.Connect(insecure, kOld);
  const auto after = server.Connect(insecure, kNew);
  ExpectDenied(before, 3);
  ExpectUnknown(after);
  access.Replace(SecretsOf({kOld, kNew}));
  ExpectDenied(before, 3);
  ExpectDenied(after, 3);
  access.Replace(SecretsOf({kNew}));
  ExpectUnknown(before);
  ExpectDenied(after, 3);
  std::string secret = kOld;
  const auto following =
      server.ConnectWith(insecure, SendSecret([&secret] { return secret; }));
  ExpectUnknown(following);
  secret = kNew;
  ExpectDenied(following, 3);
}

TEST_P(AccessTest, ByBothOverTls) {
  AccessPolicy policy = RulesOf("train cn:t");
  policy.secrets = SecretDigests({kOld});
  Access access(std::move(policy), true);
  const GuardedServer server(GetParam(), &access, ServerTls());
  ExpectUnknown(server.Connect(TlsOf({"t", {}, {}})));
  ExpectDenied(server.Connect(TlsOf({"t", {}, {}}), kOld), 2);
  ExpectDenied(server.Connect(TlsOf({"x", {}, {}}), kOld), 0);
}

TEST_P(AccessTest, RefusalsAreCountedByPermissionAndLoggedWithinLimits) {
  Access access(SecretsOf({kOld}), false);
  const GuardedServer server(GetParam(), &access,
                             grpc::InsecureServerCredentials());
  const auto channel = server.Connect(grpc::InsecureChannelCredentials());
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 30; ++i) Call(channel, &Guarded::Stub::Train);
  Call(channel, &Guarded::Stub::Administer);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(access.refused(Permission::kRead), 0u);
  EXPECT_EQ(access.refused(Permission::kTrain), 30u);
  EXPECT_EQ(access.refused(Permission::kAdminister), 1u);
  size_t lines = 0;
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    lines += absl::StrContains(line, "access: ipv4:127.0.0.1:");
  }
  EXPECT_EQ(lines, 10u) << log;
}

INSTANTIATE_TEST_SUITE_P(Over, AccessTest,
                         ::testing::Values(Way::kStock, Way::kTcp, Way::kShm),
                         [](const ::testing::TestParamInfo<Way>& way) {
                           return way.param == Way::kStock ? "Stock"
                                  : way.param == Way::kTcp ? "Tcp"
                                                           : "Shm";
                         });

}  // namespace
}  // namespace penstock::ps
