// Parses the address of an etcd and of a training in it.

#ifndef PENSTOCK_PS_MEMBERSHIP_TARGET_H_
#define PENSTOCK_PS_MEMBERSHIP_TARGET_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ps/etcd/client.h"

namespace penstock::ps::membership {

struct Target {
  std::vector<std::string> endpoints;  // HOST:PORT
  std::string prefix;
};

constexpr char kScheme[] = "etcd://";

// Returns true if `text` begins with kScheme.
bool IsTarget(absl::string_view text);

// Parses "etcd://HOST[:PORT][,HOST[:PORT]...][/PREFIX]". The port is 2379, and
// the prefix kDefaultPrefix, unless they are given. Returns INVALID_ARGUMENT.
absl::StatusOr<Target> ParseTarget(absl::string_view text);

// Parses "HOST[:PORT][,HOST[:PORT]...]", with the port 2379 unless it is given.
// Returns INVALID_ARGUMENT, which says what is wrong.
absl::StatusOr<std::vector<std::string>> ParseEndpoints(absl::string_view text);

// Returns true for HOST:PORT. An IPv6 address needs brackets.
bool HasHostAndPort(absl::string_view address);

// The environment variables for connecting to etcd. They name files, and are
// ignored in a program that has more rights than its caller.
//
//   PENSTOCK_ETCD_CA             the signer of etcd's certificate, a PEM file;
//                                selects TLS
//   PENSTOCK_ETCD_CERT, _KEY     this process's certificate for etcd, PEM files
//   PENSTOCK_ETCD_USER           a user of etcd
//   PENSTOCK_ETCD_PASSWORD_FILE  a file with that user's password
//
// Returns a client's options, by the environment. Returns an error that names
// the variable if a file is missing or unsafe, or a variable lacks another one.
absl::StatusOr<etcd::Client::Options> ClientOptions(
    const std::vector<std::string>& endpoints);

}  // namespace penstock::ps::membership

#endif  // PENSTOCK_PS_MEMBERSHIP_TARGET_H_
