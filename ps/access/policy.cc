#include "ps/access/policy.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "ps/access/trusted_file.h"
#include "transport/base/printable.h"

namespace penstock::ps {
namespace {

// Limits the number of rules. More than any team needs, and few enough for a
// fast check of each call.
constexpr size_t kMaxRules = 1000;
constexpr size_t kMaxFileBytes = 256 << 10;
constexpr size_t kShownBytes = 64;

absl::optional<Permission> PermissionOf(absl::string_view word) {
  for (Permission each :
       {Permission::kRead, Permission::kTrain, Permission::kAdminister}) {
    if (word == ToString(each)) return each;
  }
  return absl::nullopt;
}

absl::StatusOr<Rule> ParseRule(absl::string_view line, size_t number) {
  const size_t end = line.find_first_of(" \t");
  const absl::string_view word = line.substr(0, end);
  const absl::optional<Permission> permission = PermissionOf(word);
  if (!permission.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", base::Printable(word, kShownBytes),
                     "' is none of read, train, administer"));
  }
  const absl::string_view who =
      end == absl::string_view::npos ? "" : line.substr(end);
  absl::StatusOr<Pattern> pattern =
      Pattern::Parse(absl::StripAsciiWhitespace(who));
  if (!pattern.ok()) return pattern.status();
  return Rule{*permission, *std::move(pattern), number};
}

absl::Status At(const std::string& path, size_t line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ":", line, ": ", what));
}

}  // namespace

absl::string_view ToString(Permission permission) {
  switch (permission) {
    case Permission::kRead:
      return "read";
    case Permission::kTrain:
      return "train";
    case Permission::kAdminister:
      return "administer";
  }
  return "";
}

absl::StatusOr<std::vector<Rule>> ParseRules(absl::string_view text,
                                             const std::string& path) {
  std::vector<Rule> rules;
  absl::flat_hash_map<std::string, size_t> line_of;  // by pattern
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    if (rules.size() == kMaxRules) {
      return At(path, number, absl::StrCat("more than ", kMaxRules, " rules"));
    }
    absl::StatusOr<Rule> rule = ParseRule(line, number);
    if (!rule.ok()) return At(path, number, rule.status().message());
    const auto [first, is_new] =
        line_of.emplace(rule->who.ToString(), rule->line);
    if (!is_new) {
      return At(path, number,
                absl::StrCat(base::Printable(first->first, kShownBytes),
                             " is in line ", first->second,
                             " as well: keep one of them, as administer implies"
                             " train, and train read"));
    }
    rules.push_back(*std::move(rule));
  }
  if (rules.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": there is no rule in it, so nobody could do anything: "
        "add one, such as 'train uri:spiffe://example/trainer/*'"));
  }
  return rules;
}

absl::StatusOr<AccessPolicy> ReadAccessPolicy(const AccessFiles& files,
                                              bool mutual_tls) {
  AccessPolicy policy;
  if (!files.rules.empty()) {
    if (!mutual_tls) {
      return absl::InvalidArgumentError(
          absl::StrCat(files.rules,
                       ": its rules are about names in certificates, and there "
                       "is no TLS: give --ca, --cert and --key as well"));
    }
    absl::StatusOr<std::string> text =
        ReadTrustedFile(files.rules, kMaxFileBytes, Secrecy::kOpen);
    if (!text.ok()) return text.status();
    absl::StatusOr<std::vector<Rule>> rules = ParseRules(*text, files.rules);
    if (!rules.ok()) return rules.status();
    policy.path = files.rules;
    policy.rules = *std::move(rules);
  }
  if (!files.secret.empty()) {
    absl::StatusOr<std::vector<std::string>> secrets =
        ReadSecrets(files.secret);
    if (!secrets.ok()) return secrets.status();
    policy.secrets = SecretDigests(*secrets);
  }
  return policy;
}

}  // namespace penstock::ps
