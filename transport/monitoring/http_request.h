// The head of an HTTP/1 request, and answers. Total functions.

#ifndef PENSTOCK_TRANSPORT_MONITORING_HTTP_REQUEST_H_
#define PENSTOCK_TRANSPORT_MONITORING_HTTP_REQUEST_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock {
namespace monitoring {

// Limits a head: a scraper's has some 300 bytes.
constexpr size_t kMaxHeadBytes = 8192;

struct HttpRequest {
  std::string method;
  std::string path;  // without the query
};

// Parses what has come of a connection. Returns nothing while the head is
// incomplete, and INVALID_ARGUMENT as soon as the bytes can be no HTTP/1, or
// the head has more than kMaxHeadBytes. Reads the request line, and ignores the
// fields.
absl::StatusOr<absl::optional<HttpRequest>> ParseHttpRequest(
    absl::string_view bytes);

// Returns an answer without its body, after which the connection ends.
std::string EncodeHttpAnswer(absl::string_view status,
                             absl::string_view content_type, size_t body_bytes);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_HTTP_REQUEST_H_
