// Decide(), and its messages for refused callers.

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ps/access/policy.h"

namespace penstock::ps {
namespace {

constexpr char kScheme[] = "Bearer ";
constexpr size_t kShownNames = 3;

absl::Status CheckSecret(const SecretDigests& secrets, const Caller& caller,
                         absl::string_view wanted) {
  constexpr char kRemedy[] =
      "; give this program the secret's file, or send the metadata "
      "'authorization: Bearer SECRET' once";
  if (caller.authorization.size() != 1 ||
      !absl::StartsWithIgnoreCase(caller.authorization[0], kScheme)) {
    return absl::UnauthenticatedError(absl::StrCat(
        wanted, ": refused: the server requires a secret, and the call has ",
        caller.authorization.empty()      ? "none"
        : caller.authorization.size() > 1 ? "several"
                                          : "another authorization",
        kRemedy));
  }
  absl::string_view presented = caller.authorization[0];
  presented.remove_prefix(sizeof kScheme - 1);
  if (secrets.Contains(presented)) return absl::OkStatus();
  return absl::UnauthenticatedError(absl::StrCat(
      wanted,
      ": refused: the call's secret is none of the server's: the first line of "
      "this program's file must be a line of the server's"));
}

std::string Join(const std::vector<Identity>& names) {
  const size_t shown = std::min(names.size(), kShownNames);
  std::string text = absl::StrJoin(
      names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", ",
      [](std::string* out, const Identity& name) {
        out->append(ToString(name));
      });
  if (names.size() > shown) {
    absl::StrAppend(&text, " and ", names.size() - shown, " more");
  }
  return text;
}

// Returns the rule that gives the highest permission to one of `names`, or
// null.
const Rule* BestRule(const std::vector<Rule>& rules,
                     const std::vector<Identity>& names) {
  const Rule* best = nullptr;
  for (const Rule& rule : rules) {
    if (best != nullptr && rule.permission <= best->permission) continue;
    if (rule.who.matches_any() ||
        std::any_of(names.begin(), names.end(), [&rule](const Identity& name) {
          return rule.who.Matches(name);
        })) {
      best = &rule;
    }
  }
  return best;
}

// Returns the error for a refused caller. `names` are the names that may
// identify the caller. `all` has all names of the certificate.
absl::Status Deny(const std::string& path, absl::string_view wanted,
                  const std::vector<Identity>& names,
                  const std::vector<Identity>& all, const Rule* best) {
  std::string text = absl::StrCat(wanted, ": refused to ");
  if (names.empty()) {
    absl::StrAppend(&text, "a certificate without a name that counts",
                    all.empty() ? "" : absl::StrCat(" (", Join(all), ")"));
  } else {
    absl::StrAppend(&text, Join(names));
  }
  if (best != nullptr) {
    absl::StrAppend(&text, ", which may only ", ToString(best->permission),
                    " by line ", best->line, " of ", path);
  } else {
    absl::StrAppend(&text, ", which no line of ", path, " permits anything");
  }
  if (names.empty()) {
    absl::StrAppend(&text,
                    "; have a certificate made with one URI or DNS name"
                    " as subject alternative name");
  } else {
    absl::StrAppend(&text, "; this line in that file would permit it: '",
                    wanted, " ", ToString(names[0]), "'");
  }
  return absl::PermissionDeniedError(text);
}

}  // namespace

absl::Status Decide(const AccessPolicy& policy, const Caller& caller,
                    Permission permission) {
  const absl::string_view wanted = ToString(permission);
  if (!policy.rules.empty() && !caller.has_certificate) {
    return absl::UnauthenticatedError(absl::StrCat(
        wanted,
        ": refused: the server knows peers by their certificates, and this one "
        "shows none: use TLS, with a certificate and its key"));
  }
  if (!policy.secrets.empty()) {
    absl::Status secret = CheckSecret(policy.secrets, caller, wanted);
    if (!secret.ok()) return secret;
  }
  if (policy.rules.empty()) return absl::OkStatus();
  if (caller.names.size() > kMaxNames) {
    return absl::PermissionDeniedError(absl::StrCat(
        wanted, ": refused to a certificate with ", caller.names.size(),
        " names: ", kMaxNames, " are the most; have one made with fewer"));
  }
  const std::vector<Identity> names = NamesThatCount(caller.names);
  const Rule* const best = BestRule(policy.rules, names);
  if (best != nullptr && best->permission >= permission) {
    return absl::OkStatus();
  }
  return Deny(policy.path, wanted, names, caller.names, best);
}

}  // namespace penstock::ps
