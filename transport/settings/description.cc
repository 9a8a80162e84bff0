#include "transport/settings/description.h"

#include <tuple>

#include "absl/strings/str_cat.h"
#include "transport/settings/table.h"

namespace penstock {

std::vector<Description> DescribeSettings() {
  std::vector<Description> all;
  const auto describe = [&all](const auto&... rows) {
    (all.push_back(rows.Describe()), ...);
  };
  std::apply(describe, kRows);
  std::apply(describe, kProcessRows);
  return all;
}

absl::Status CheckVariable(absl::string_view variable, absl::string_view text) {
  absl::Status result = absl::NotFoundError(
      absl::StrCat(variable, " is not a setting of Penstock"));
  const auto check = [&](const auto& row) {
    if (variable == row.variable()) result = row.CheckText(text);
  };
  const auto check_all = [&check](const auto&... rows) { (check(rows), ...); };
  std::apply(check_all, kRows);
  std::apply(check_all, kProcessRows);
  return result;
}

}  // namespace penstock
