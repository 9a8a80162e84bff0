// Tests that gRPC sees the same properties in wrapped credentials as in the
// inner credentials.

#include "transport/grpc/handshake/credentials.h"

#include <grpc/grpc_security.h>

#include <memory>

#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "src/core/lib/channel/channel_args.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/security/credentials/credentials.h"
#include "src/core/lib/security/credentials/xds/xds_credentials.h"
#include "src/cpp/client/secure_credentials.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace core {
namespace {

grpc_channel_credentials* Raw(
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  return dynamic_cast<grpc::SecureChannelCredentials*>(credentials.get())
      ->GetRawCreds();
}

// Returns the channel arguments that grpc_channel_create() makes.
grpc_core::ChannelArgs ChannelArgsOf(grpc_channel_credentials* credentials) {
  return credentials->update_arguments(
      grpc_core::ChannelArgs().SetObject(credentials->Ref()));
}

class CredentialsTest : public testing::Test {
 protected:
  grpc_core::ExecCtx exec_ctx_;
  const std::shared_ptr<grpc::ChannelCredentials> xds_ =
      grpc::XdsCredentials(grpc::InsecureChannelCredentials());
  const std::shared_ptr<grpc::ChannelCredentials> tls_ =
      grpc::experimental::TlsCredentials(
          grpc::experimental::TlsChannelCredentialsOptions());
};

// Tests that gRPC recognises wrapped xDS credentials. cds.cc uses the control
// plane's certificates only for this type. For other types, cds.cc uses the
// fallback credentials, which may be unencrypted.
TEST_F(CredentialsTest, XdsIsRecognised) {
  const auto wrapped = WrapCredentials(xds_, Settings());
  const auto args = ChannelArgsOf(Raw(wrapped));
  EXPECT_EQ(args.GetObject<grpc_channel_credentials>()->type(),
            grpc_core::XdsCredentials::Type());
}

TEST_F(CredentialsTest, AChannelHasTheCredentialsThatWereWrapped) {
  for (const auto& inner : {xds_, tls_}) {
    const auto wrapped = WrapCredentials(inner, Settings());
    const auto args = ChannelArgsOf(Raw(wrapped));
    auto* const seen = args.GetObject<grpc_channel_credentials>();
    EXPECT_EQ(seen, Raw(inner));
    EXPECT_EQ(seen->cmp(Raw(inner)), 0);
    EXPECT_EQ(seen->duplicate_without_call_credentials().get(),
              Raw(inner)->duplicate_without_call_credentials().get());
  }
}

TEST_F(CredentialsTest, ChannelsOfOtherSettingsDiffer) {
  Settings other;
  other.policy = Policy::kRequire;
  const auto one = WrapCredentials(tls_, Settings());
  const auto same = WrapCredentials(tls_, Settings());
  const auto two = WrapCredentials(tls_, other);
  EXPECT_EQ(QsortCompare(ChannelArgsOf(Raw(one)), ChannelArgsOf(Raw(same))), 0);
  EXPECT_NE(QsortCompare(ChannelArgsOf(Raw(one)), ChannelArgsOf(Raw(two))), 0);
  EXPECT_NE(QsortCompare(ChannelArgsOf(Raw(one)), ChannelArgsOf(Raw(tls_))), 0);
}

TEST_F(CredentialsTest, TheInnerSettingsHold) {
  Settings other;
  other.policy = Policy::kRequire;
  const auto once = WrapCredentials(tls_, Settings());
  const auto composite = grpc::CompositeChannelCredentials(
      once, grpc::AccessTokenCredentials("token"));
  for (const auto& inner : {once, composite}) {
    const auto twice = WrapCredentials(inner, other);
    const auto args = ChannelArgsOf(Raw(twice));
    EXPECT_EQ(QsortCompare(args, ChannelArgsOf(Raw(inner))), 0);
  }
}

TEST_F(CredentialsTest, CallCredentialsComposedWithWrappedOnesStay) {
  const auto composite = grpc::CompositeChannelCredentials(
      WrapCredentials(tls_, Settings()), grpc::AccessTokenCredentials("token"));
  const auto args = ChannelArgsOf(Raw(composite));
  EXPECT_EQ(args.GetObject<grpc_channel_credentials>(), Raw(composite));
}

}  // namespace
}  // namespace core
}  // namespace penstock
