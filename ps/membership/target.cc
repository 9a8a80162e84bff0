#include "ps/membership/target.h"

#include <stdlib.h>  // secure_getenv

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "grpcpp/security/credentials.h"
#include "ps/access/trusted_file.h"
#include "ps/membership/keys.h"

namespace penstock::ps::membership {
namespace {

constexpr char kPort[] = ":2379";
constexpr int kMaxPort = 65535;
constexpr size_t kMaxPasswordBytes = 4096;

constexpr char kCa[] = "PENSTOCK_ETCD_CA";
constexpr char kCert[] = "PENSTOCK_ETCD_CERT";
constexpr char kPrivateKey[] = "PENSTOCK_ETCD_KEY";
constexpr char kUser[] = "PENSTOCK_ETCD_USER";
constexpr char kPasswordFile[] = "PENSTOCK_ETCD_PASSWORD_FILE";

// Returns true for HOST, or [IPV6] in brackets.
bool IsHost(absl::string_view text) {
  const bool has_brackets = absl::ConsumePrefix(&text, "[");
  if (has_brackets && !absl::ConsumeSuffix(&text, "]")) return false;
  return !text.empty() &&
         text.find_first_of(has_brackets ? "/[]@ \t" : ":/[]@ \t") ==
             absl::string_view::npos;
}

// Returns the reason why `text` is not an endpoint, or "" if it is.
std::string WhyNoEndpoint(absl::string_view text) {
  if (absl::StrContains(text, "://")) {
    return "it has a scheme; for TLS, set PENSTOCK_ETCD_CA";
  }
  if (absl::StrContains(text, "/")) return "it has a '/'";
  const bool may_be_ipv6 = std::count(text.begin(), text.end(), ':') > 1 &&
                           !absl::StrContains(text, "[");
  if (may_be_ipv6) return "an IPv6 address needs brackets: [::1]:2379";
  return "it lacks a host, or has a wrong port";
}

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
  auto endpoints = ParseEndpoints(rest.substr(0, slash));
  if (!endpoints.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not ", kScheme,
                     "HOST:2379/PREFIX: ", endpoints.status().message()));
  }
  target.endpoints = *std::move(endpoints);
  return target;
}

bool HasHostAndPort(absl::string_view address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  return colon != absl::string_view::npos && IsHost(address.substr(0, colon)) &&
         absl::SimpleAtoi(address.substr(colon + 1), &port) && port > 0 &&
         port <= kMaxPort;
}

absl::StatusOr<std::vector<std::string>> ParseEndpoints(
    absl::string_view text) {
  std::vector<std::string> endpoints;
  for (absl::string_view endpoint : absl::StrSplit(text, ',')) {
    if (IsHost(endpoint)) {
      endpoints.push_back(absl::StrCat(endpoint, kPort));
    } else if (HasHostAndPort(endpoint)) {
      endpoints.emplace_back(endpoint);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("'", endpoint,
                       "' is no HOST:PORT of etcd: ", WhyNoEndpoint(endpoint)));
    }
  }
  return endpoints;
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
