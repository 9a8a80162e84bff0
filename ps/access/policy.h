// The access policy of a parameter server.

#ifndef PENSTOCK_PS_ACCESS_POLICY_H_
#define PENSTOCK_PS_ACCESS_POLICY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ps/access/identity.h"
#include "ps/access/secrets.h"

namespace penstock::ps {

// The permissions, in ascending order. Each permission includes all lower ones.
enum class Permission {
  kRead,        // pull, describe, the model
  kTrain,       // define, initialise, join, push
  kAdminister,  // checkpoint, and everything else
};
constexpr size_t kPermissions = 3;

// Returns the permission's word in a rules file: "read", "train" or
// "administer".
absl::string_view ToString(Permission permission);

// A line of a rules file.
struct Rule {
  Permission permission = Permission::kRead;
  Pattern who;
  size_t line = 0;  // the first is 1
};

// Parses a rules file. Each line has a permission, spaces, and a Pattern. Blank
// lines and lines that begin with '#' are skipped.
//
//   # The ranking team's trainers, and whoever serves what they train.
//   train       uri:spiffe://ranking.example/trainer/*
//   read        dns:*.serving.example
//   administer  cn:Ranking on call
//
// Returns INVALID_ARGUMENT, with path and line, if a line has another form, if
// a pattern is repeated, or if there are 0 rules or more than 1,000.
absl::StatusOr<std::vector<Rule>> ParseRules(absl::string_view text,
                                             const std::string& path);

// A server's requirements for each call. A policy without rules and secrets
// allows everything.
struct AccessPolicy {
  std::string path;         // of the rules file, for messages
  std::vector<Rule> rules;  // empty: no restriction
  SecretDigests secrets;    // empty: none required
};

// The paths of the files that flags name. A path is empty if its flag was not
// given.
struct AccessFiles {
  std::string rules;   // in the form of ParseRules()
  std::string secret;  // in the form of ReadSecrets()

  bool given() const { return !rules.empty() || !secret.empty(); }
};

// Reads the given files. `mutual_tls` is true if peers show certificates that
// are verified. Returns INVALID_ARGUMENT if there are rules without mutual TLS,
// because no peer would have a name. Other errors name the file, and the line
// if the file could be read.
absl::StatusOr<AccessPolicy> ReadAccessPolicy(const AccessFiles& files,
                                              bool mutual_tls);

// The known facts about a caller.
struct Caller {
  bool has_certificate = false;  // and it is verified
  std::vector<Identity> names;   // all of the certificate's names
  // The values of the call's metadata `authorization`.
  std::vector<absl::string_view> authorization;
};

// Limits the names in a certificate. A caller whose certificate has more names
// is refused. Together with the number of rules, this bounds the work per call.
constexpr size_t kMaxNames = 64;

// Returns OK if `policy` gives the caller the permission `wanted`. If the
// policy has both a secret and rules, both must be met. Otherwise returns
//
// - UNAUTHENTICATED if there are rules and the caller has no certificate, or if
//   the call has no secret or a wrong one; the message reveals nothing about
//   the rules,
// - PERMISSION_DENIED if no rule gives the permission to one of the caller's
//   names. The message has the names, their permissions and rules, and the
//   missing rule.
absl::Status Decide(const AccessPolicy& policy, const Caller& caller,
                    Permission wanted);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_ACCESS_POLICY_H_
