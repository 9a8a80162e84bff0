// Fetches a page.

#ifndef PENSTOCK_CLI_TOP_HTTP_GET_H_
#define PENSTOCK_CLI_TOP_HTTP_GET_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace penstock::cli {

// Returns what `url` (http or https) answers with status 200, of at most 16
// MiB. UNAVAILABLE says why there is nothing.
absl::StatusOr<std::string> HttpGet(const std::string& url,
                                    absl::Duration limit);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TOP_HTTP_GET_H_
