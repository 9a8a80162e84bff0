#include "cli/text/units.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace penstock::cli {
std::string DurationText(absl::Duration duration) {
  double value = absl::ToDoubleMicroseconds(duration);
  const char* unit = "us";
  if (value >= 999.5e3) {
    value /= 1e6;
    unit = "s";
  } else if (value >= 999.5) {
    value /= 1e3;
    unit = "ms";
  }
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f %s", digits, value, unit);
}

absl::StatusOr<size_t> ParseSize(absl::string_view text) {
  absl::string_view digits = text;
  uint64_t unit_bytes = 1;
  for (const base::ByteUnit& unit : base::kByteUnits) {
    if (absl::ConsumeSuffix(&digits, unit.name)) {
      unit_bytes = unit.bytes;
      break;
    }
  }
  uint64_t count = 0;
  if (!absl::SimpleAtoi(digits, &count) || count > SIZE_MAX / unit_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is no size: use 8, 64KiB or 1MiB"));
  }
  return count * unit_bytes;
}

absl::StatusOr<std::vector<size_t>> ParseSizes(absl::string_view text,
                                               size_t max) {
  std::vector<size_t> sizes;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    const absl::StatusOr<size_t> size = ParseSize(item);
    if (!size.ok()) return size.status();
    if (*size > max) {
      return absl::InvalidArgumentError(
          absl::StrCat(item, " is more than ", BytesText(max)));
    }
    if (std::find(sizes.begin(), sizes.end(), *size) != sizes.end()) {
      return absl::InvalidArgumentError(absl::StrCat(item, " is given twice"));
    }
    sizes.push_back(*size);
  }
  return sizes;
}

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text) {
  double seconds = 0;
  absl::Duration duration;
  if (absl::SimpleAtod(text, &seconds) && std::isfinite(seconds)) {
    duration = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(text, &duration)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is no time: use 200ms, 1s or 0.5"));
  }
  if (duration < absl::ZeroDuration() || duration > absl::Hours(24)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not between 0 and a day"));
  }
  return duration;
}

absl::StatusOr<absl::Duration> ParseLimit(absl::string_view flag,
                                          absl::string_view text) {
  const absl::StatusOr<absl::Duration> limit = ParseDuration(text);
  if (limit.ok() && *limit > absl::ZeroDuration()) return limit;
  return absl::InvalidArgumentError(absl::StrCat(
      flag, ": ", limit.ok() ? "must be above 0" : limit.status().message()));
}

}  // namespace penstock::cli
