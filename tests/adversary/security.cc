#include "tests/adversary/security.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace penstock::adversary {
namespace {

constexpr char kAuthority[] = "VICTIM_AUTHORITY";
constexpr char kKey[] = "VICTIM_KEY";
constexpr char kCertificate[] = "VICTIM_CERTIFICATE";

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::vector<std::string> ToEnvironment(const Identity& identity) {
  return {absl::StrCat(kAuthority, "=", identity.authority),
          absl::StrCat(kKey, "=", identity.key),
          absl::StrCat(kCertificate, "=", identity.certificate)};
}

Identity FromEnvironment() {
  return {Variable(kAuthority), Variable(kKey), Variable(kCertificate)};
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(
    const Identity& identity) {
  if (!identity.has_tls()) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials(
      {identity.authority, identity.key, identity.certificate});
}

std::shared_ptr<grpc::ServerCredentials> ServerCredentials(
    const Identity& identity) {
  if (!identity.has_tls()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = identity.authority;
  options.pem_key_cert_pairs.push_back({identity.key, identity.certificate});
  return grpc::SslServerCredentials(options);
}

}  // namespace penstock::adversary
