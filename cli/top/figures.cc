#include "cli/top/figures.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "cli/text/units.h"

namespace penstock::cli {

std::string Count(double value) {
  static const char* const kUnits[] = {"", "k", "M", "G", "T"};
  size_t unit = 0;
  while (value >= 9999.5 && unit + 1 < sizeof kUnits / sizeof *kUnits) {
    value /= 1000;
    ++unit;
  }
  const bool is_whole =
      unit == 0 && (value >= 100 || value == std::floor(value));
  return absl::StrFormat("%.*f%s", is_whole ? 0 : 1, value, kUnits[unit]);
}

std::string Bytes(double value) {
  return BytesText(static_cast<uint64_t>(std::llround(value)));
}

std::string Percent(double part, double all) {
  return all > 0 ? absl::StrFormat("%.0f%%", 100 * part / all) : "-";
}

}  // namespace penstock::cli
