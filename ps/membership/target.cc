#include "ps/membership/target.h"

#include <stdlib.h>  // secure_getenv

#include <fstream>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "grpcpp/security/credentials.h"
#include "ps/access/trusted_file.h"
#include "ps/membership/keys.h"

namespace penstock::ps::membership {
namespace {

constexpr char kPort[] = ":2379";
constexpr size_t kMaxPasswordBytes = 4096;

constexpr char kCa[] = "PENSTOCK_ETCD_CA";
constexpr char kCert[] = "PENSTOCK_ETCD_CERT";
constexpr char kPrivateKey[] = "PENSTOCK_ETCD_KEY";
constexpr char kUser[] = "PENSTOCK_ETCD_USER";
constexpr char kPasswordFile[] = "PENSTOCK_ETCD_PASSWORD_FILE";

std::string Environment(const char* name) {
  const char* const value = secure_getenv(name);
  return value == nullptr ? "" : value;
}

absl::Status Needs(const char* one, const char* other) {
  return absl::InvalidArgumentError(
      absl::StrCat(one, " needs ", other, ": set both, or neither"));
}

// Returns the content of the file that a variable names, or "" if it is unset.
absl::StatusOr<std::string> ReadPem(const char* variable) {
  const std::string path = Environment(variable);
  if (path.empty()) return path;
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!absl::StrContains(text, "-----BEGIN ")) {
    return absl::NotFoundError(absl::StrCat(
        variable, "=", path, ": cannot read it, or it is no PEM file"));
  }
  return text;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Security() {
  const bool has_cert = !Environment(kCert).empty();
  if (has_cert != !Environment(kPrivateKey).empty()) {
    return Needs(kCert, kPrivateKey);
  }
  if (Environment(kCa).empty()) {
    if (has_cert) return Needs(kCert, kCa);
    return grpc::InsecureChannelCredentials();
  }
  const auto ca = ReadPem(kCa);
  if (!ca.ok()) return ca.status();
  const auto cert = ReadPem(kCert);
  if (!cert.ok()) return cert.status();
  const auto key = ReadPem(kPrivateKey);
  if (!key.ok()) return key.status();
  return grpc::SslCredentials({*ca, *key, *cert});
}

absl::StatusOr<std::string> ReadPassword() {
  const std::string path = Environment(kPasswordFile);
  const auto text = ReadTrustedFile(path, kMaxPasswordBytes, Secrecy::kSecret);
  if (!text.ok()) {
    return absl::Status(
        text.status().code(),
        absl::StrCat(kPasswordFile, ": ", text.status().message()));
  }
  const std::string password(absl::StripTrailingAsciiWhitespace(*text));
  if (password.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kPasswordFile, "=", path, " is empty"));
  }
  return password;
}

}  // namespace

bool IsTarget(absl::string_view text) {
  return absl::StartsWith(text, kScheme);
}

absl::StatusOr<Target> ParseTarget(absl::string_view text) {
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, kScheme)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' does not begin with ", kScheme));
  }
  const size_t slash = rest.find('/');
  Target target;
  target.prefix = slash == absl::string_view::npos
                      ? kDefaultPrefix
                      : std::string(rest.substr(slash + 1));
  absl::Status status = CheckPrefix(target.prefix);
  if (!status.ok()) return status;
  for (absl::string_view endpoint :
       absl::StrSplit(rest.substr(0, slash), ',')) {
    if (endpoint.empty() || endpoint.front() == ':') {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", text, "' lacks a host: ", kScheme, "HOST:2379/PREFIX"));
    }
    const bool has_port =
        !absl::EndsWith(endpoint, "]") && absl::StrContains(endpoint, ":");
    target.endpoints.push_back(absl::StrCat(endpoint, has_port ? "" : kPort));
  }
  return target;
}

absl::StatusOr<etcd::Client::Options> ClientOptions(
    const std::vector<std::string>& endpoints) {
  etcd::Client::Options options;
  options.endpoints = endpoints;
  auto security = Security();
  if (!security.ok()) return security.status();
  options.security = *std::move(security);
  options.user = Environment(kUser);
  if (options.user.empty() != Environment(kPasswordFile).empty()) {
    return Needs(kUser, kPasswordFile);
  }
  if (options.user.empty()) return options;
  auto password = ReadPassword();
  if (!password.ok()) return password.status();
  options.password = *std::move(password);
  return options;
}

}  // namespace penstock::ps::membership
