// Parses the head of an HTTP/1 request, and encodes the head of an answer. All
// functions accept any input.

#ifndef PENSTOCK_TRANSPORT_MONITORING_HTTP_REQUEST_H_
#define PENSTOCK_TRANSPORT_MONITORING_HTTP_REQUEST_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock {
namespace monitoring {

// Limits the size of a head, in bytes. A scraper's head has some 300 bytes.
constexpr size_t kMaxHeadBytes = 8192;

struct HttpRequest {
  std::string method;
  std::string path;  // without the query, and without scheme and host
};

// Parses the bytes received so far on a connection. Returns nothing while the
// head is incomplete. Returns INVALID_ARGUMENT as soon as the bytes cannot be
// HTTP/1, or the head exceeds kMaxHeadBytes. Parses only the request line, and
// ignores header fields.
absl::StatusOr<absl::optional<HttpRequest>> ParseHttpRequest(
    absl::string_view bytes);

// Returns the head of an answer, after which the connection ends.
std::string EncodeHttpAnswer(absl::string_view status,
                             absl::string_view content_type, size_t body_bytes);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_HTTP_REQUEST_H_
