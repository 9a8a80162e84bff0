// Fetches a page by HTTP.

#ifndef PENSTOCK_CLI_TOP_HTTP_GET_H_
#define PENSTOCK_CLI_TOP_HTTP_GET_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace penstock::cli {

// Returns the body of `url` (http or https) if the status is 200 and the size
// is at most 16 MiB. Otherwise returns UNAVAILABLE, with the reason.
absl::StatusOr<std::string> HttpGet(const std::string& url,
                                    absl::Duration limit);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TOP_HTTP_GET_H_
