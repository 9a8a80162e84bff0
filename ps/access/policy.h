// Who may do what at a parameter server.

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

// Each implies those above it.
enum class Permission {
  kRead,        // pull, describe, the model
  kTrain,       // define, initialise, join, push
  kAdminister,  // checkpoint, and whatever is neither of the others
};
constexpr size_t kPermissions = 3;

// Returns the word for it in a file: "read", "train" or "administer".
absl::string_view ToString(Permission permission);

// One line of a file of rules.
struct Rule {
  Permission permission = Permission::kRead;
  Pattern who;
  size_t line = 0;  // the first is 1
};

// Parses a file of rules. Each line has a permission, spaces, and a pattern of
// names, as Pattern says. Blank lines and those that begin with '#' are
// skipped.
//
//   # The ranking team's trainers, and whoever serves what they train.
//   train       uri:spiffe://ranking.example/trainer/*
//   read        dns:*.serving.example
//   administer  cn:Ranking on call
//
// Returns INVALID_ARGUMENT, with path and line, for anything else, for a
// pattern that is there twice, for no rule at all, and for more than 1,000.
absl::StatusOr<std::vector<Rule>> ParseRules(absl::string_view text,
                                             const std::string& path);

// What a server demands of each call. A policy without rules and secrets
// demands nothing.
struct AccessPolicy {
  std::string path;         // of the file of rules, for messages
  std::vector<Rule> rules;  // empty: every peer may do all
  SecretDigests secrets;    // empty: none is asked for
};

// Paths of files, from flags; empty: not given.
struct AccessFiles {
  std::string rules;   // read as ParseRules() says
  std::string secret;  // read as ReadSecrets() says

  bool given() const { return !rules.empty() || !secret.empty(); }
};

// Reads what is given. `mutual_tls` says whether peers show certificates that
// are verified. Returns INVALID_ARGUMENT if there are rules without that, since
// nobody could be known by name. Other errors name the file, and its line if it
// could be read.
absl::StatusOr<AccessPolicy> ReadAccessPolicy(const AccessFiles& files,
                                              bool mutual_tls);

// What is known of who makes a call.
struct Caller {
  bool has_certificate = false;  // one that is verified
  std::vector<Identity> names;   // all that the certificate has, of these kinds
  // The values of the call's metadata `authorization`.
  std::vector<absl::string_view> authorization;
};

// A certificate with more names is refused: the work for a call is bounded by
// this and the number of rules.
constexpr size_t kMaxNames = 64;

// Returns OK if `policy` lets the caller do what `wanted` stands for. The
// secret and the rules must both be met, if there are both. Else returns
//
// - UNAUTHENTICATED if there are rules and no certificate, or if the call has
//   no secret or a wrong one; this says nothing of the rules,
// - PERMISSION_DENIED if no line gives the permission to one of the caller's
//   names. The message has the names, what they may do by which line, and the
//   line that is missing.
absl::Status Decide(const AccessPolicy& policy, const Caller& caller,
                    Permission wanted);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_ACCESS_POLICY_H_
