#include "ps/access/identity.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "transport/base/printable.h"

namespace penstock::ps {
namespace {

constexpr char kAny[] = "any";
constexpr size_t kShownBytes = 256;

struct Prefix {
  const char* text;
  NameKind kind;
};
constexpr Prefix kPrefixes[] = {{"uri:", NameKind::kUri},
                                {"dns:", NameKind::kDns},
                                {"cn:", NameKind::kCommonName}};

const char* PrefixOf(NameKind kind) {
  for (const Prefix& prefix : kPrefixes) {
    if (prefix.kind == kind) return prefix.text;
  }
  return "";
}

// Returns the character that '*' does not match. Returns NUL, which no name
// contains, for common names, in which '*' matches every character.
char SeparatorOf(NameKind kind) {
  switch (kind) {
    case NameKind::kUri:
      return '/';
    case NameKind::kDns:
      return '.';
    case NameKind::kCommonName:
      return '\0';
  }
  return '\0';
}

bool IsPlain(const Identity& identity) {
  const bool spaces = identity.kind == NameKind::kCommonName;
  return !identity.name.empty() && identity.name.size() <= kMaxNameBytes &&
         std::all_of(identity.name.begin(), identity.name.end(),
                     [spaces](unsigned char c) {
                       return spaces ? absl::ascii_isprint(c)
                                     : absl::ascii_isgraph(c);
                     });
}

bool IsSpiffe(const Identity& identity) {
  return identity.kind == NameKind::kUri &&
         absl::StartsWithIgnoreCase(identity.name, "spiffe:");
}

// Returns true if `glob` matches all of `text`, which has no '*'. Backtracking
// to the last '*' suffices: separators match only each other, so each section
// between two separators is matched independently.
bool GlobMatches(absl::string_view glob, absl::string_view text,
                 char separator) {
  size_t g = 0;
  size_t t = 0;
  size_t star = absl::string_view::npos;  // the last '*' seen
  size_t taken = 0;                       // the end of its match
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*' && text[t] != separator) {
      star = g++;
      taken = ++t;
    } else if (g < glob.size() && glob[g] == text[t]) {
      ++g;
      ++t;
    } else if (star != absl::string_view::npos && text[taken] != separator) {
      g = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  return g == glob.size();
}

}  // namespace

std::string ToString(const Identity& identity) {
  return absl::StrCat(PrefixOf(identity.kind),
                      base::Printable(identity.name, kShownBytes));
}

std::vector<Identity> NamesThatCount(const std::vector<Identity>& names) {
  const auto uris = std::count_if(
      names.begin(), names.end(),
      [](const Identity& name) { return name.kind == NameKind::kUri; });
  const bool has_alternatives = std::any_of(
      names.begin(), names.end(),
      [](const Identity& name) { return name.kind != NameKind::kCommonName; });
  std::vector<Identity> counting;
  counting.reserve(names.size());
  for (const Identity& name : names) {
    if (!IsPlain(name) || absl::StrContains(name.name, '*')) continue;
    if (IsSpiffe(name) && uris > 1) continue;
    if (name.kind == NameKind::kCommonName && has_alternatives) continue;
    counting.push_back(name);
    if (name.kind == NameKind::kDns) {
      absl::AsciiStrToLower(&counting.back().name);
    }
  }
  return counting;
}

absl::StatusOr<Pattern> Pattern::Parse(absl::string_view text) {
  Pattern pattern;
  if (text == kAny) {
    pattern.matches_any_ = true;
    return pattern;
  }
  for (const Prefix& prefix : kPrefixes) {
    absl::string_view name = text;
    if (!absl::ConsumePrefix(&name, prefix.text)) continue;
    pattern.glob_ = {prefix.kind, std::string(name)};
    if (!IsPlain(pattern.glob_)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", base::Printable(text, kShownBytes),
          "' could match no name: names are printable ASCII, without spaces "
          "but in cn, and have 1 to ",
          kMaxNameBytes, " characters"));
    }
    if (absl::StrContains(name, "**")) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", base::Printable(text, kShownBytes),
                       "' has '**': a '*' stands for one character or more "
                       "within a segment, and nothing for several segments"));
    }
    if (prefix.kind == NameKind::kDns) {
      absl::AsciiStrToLower(&pattern.glob_.name);
    }
    return pattern;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", base::Printable(text, kShownBytes),
                   "' is no identity: uri:..., dns:..., cn:... or any"));
}

bool Pattern::Matches(const Identity& identity) const {
  if (matches_any_) return true;
  return identity.kind == glob_.kind &&
         GlobMatches(glob_.name, identity.name, SeparatorOf(glob_.kind));
}

std::string Pattern::ToString() const {
  return matches_any_ ? kAny : absl::StrCat(PrefixOf(glob_.kind), glob_.name);
}

}  // namespace penstock::ps
