#include "cli/top/table.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/text/output.h"

namespace penstock::cli {

Table::Table(std::vector<Column> columns, size_t width)
    : columns_(std::move(columns)), width_(width) {
  for (const Column& each : columns_)
    max_rank_ = std::max(max_rank_, each.rank);
  while (max_rank_ > 0 && Width() > width) --max_rank_;
}

size_t Table::Width() const {
  size_t width = 0;
  for (const Column& each : columns_) {
    if (!IsShown(each)) continue;
    width += (width == 0 ? 0 : 1) + static_cast<size_t>(std::abs(each.width));
  }
  return width;
}

std::string Table::Header() const {
  std::vector<std::string> names;
  names.reserve(columns_.size());
  for (const Column& each : columns_) names.push_back(each.name);
  return Row(names);
}

std::string Table::Row(absl::Span<const std::string> cells) const {
  std::vector<std::string> shown;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!IsShown(columns_[i])) continue;
    shown.push_back(absl::StrFormat("%*s", columns_[i].width, cells[i]));
  }
  return absl::StrCat(absl::StrJoin(shown, " "), "\n");
}

std::string Table::LeftOut() const {
  std::vector<std::string> names;
  for (const Column& each : columns_) {
    if (!IsShown(each)) names.push_back(each.name);
  }
  if (names.empty()) return "";
  const std::string line =
      absl::StrCat("no room for: ", absl::StrJoin(names, ", "));
  return absl::StrCat(Wrapped(line, 0, width_), "\n");
}

}  // namespace penstock::cli
