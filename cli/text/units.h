// Formats and parses sizes and times.

#ifndef PENSTOCK_CLI_TEXT_UNITS_H_
#define PENSTOCK_CLI_TEXT_UNITS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "transport/base/bytes_text.h"

namespace penstock::cli {

using base::BytesText;

// Returns three digits and a unit: "12.3 us", "1.04 ms", "2.50 s".
std::string DurationText(absl::Duration duration);

// Parses "8", "8B", "64KiB", "1MiB", "2GiB". Returns INVALID_ARGUMENT for other
// texts.
absl::StatusOr<size_t> ParseSize(absl::string_view text);

// Parses sizes separated by commas, each at most `max`.
absl::StatusOr<std::vector<size_t>> ParseSizes(absl::string_view text,
                                               size_t max);

// Parses "200ms", "1s", or a number of seconds such as "0.2". Returns
// INVALID_ARGUMENT for other texts, negative times, and times above a day.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);

// Parses the time limit of a flag, such as "--within", which must be above 0.
// The error names the flag.
absl::StatusOr<absl::Duration> ParseLimit(absl::string_view flag,
                                          absl::string_view text);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TEXT_UNITS_H_
