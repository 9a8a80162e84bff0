// Prints a PathReport.

#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "penstock/penstock.h"

namespace penstock {

std::string PathReport::ToString() const {
  std::string text = path;
  if (!detail.empty()) absl::StrAppend(&text, " (", detail, ")");
  if (!reason.empty()) absl::StrAppend(&text, ": ", reason);
  return text;
}

std::ostream& operator<<(std::ostream& out, const PathReport& report) {
  return out << report.ToString();
}

}  // namespace penstock
