#include "transport/base/flag_errors.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "transport/base/printable.h"

namespace penstock {
namespace base {
namespace {

constexpr size_t kMaxTextBytes = 200;

// Returns how many letters to insert, drop or replace (Levenshtein's distance).
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Nearest(absl::string_view text,
                    const std::vector<std::string>& known) {
  // The largest accepted distance, plus one: a third of the letters, plus two.
  // Two swapped letters count as two.
  size_t best = std::min<size_t>(text.size(), 64) / 3 + 2;
  std::string nearest;
  for (const std::string& each : known) {
    const size_t distance = Distance(text.substr(0, 64), each);
    if (distance < best && distance < each.size()) {
      best = distance;
      nearest = each;
    }
  }
  return nearest;
}

std::string UnknownFlag(absl::string_view word,
                        const std::vector<std::string>& known) {
  const std::string nearest = Nearest(word.substr(0, word.find('=')), known);
  const bool is_flag = absl::StartsWith(word, "-");
  const std::string text = Printable(word, kMaxTextBytes);
  if (!is_flag) return absl::StrCat("\"", text, "\" is no flag");
  return absl::StrCat(
      "there is no flag ", text,
      nearest.empty() ? "" : absl::StrCat(": did you mean ", nearest, "?"));
}

std::string FlagWithoutValue(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (absl::StartsWith(word, "--") && word.find('=') == word.size() - 1) {
      return absl::StrCat(Printable(word, kMaxTextBytes), " needs a value");
    }
  }
  return "";
}

}  // namespace base
}  // namespace penstock
