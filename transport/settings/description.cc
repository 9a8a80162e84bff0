#include "transport/settings/description.h"

#include <tuple>

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

}  // namespace penstock
