#include "transport/monitoring/http_request.h"

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace penstock {
namespace monitoring {
namespace {

constexpr size_t kMaxMethodBytes = 16;

// Returns true if a request may begin with these bytes. Returns false for TLS,
// for example.
bool MayBegin(absl::string_view bytes) {
  const absl::string_view word = bytes.substr(0, bytes.find(' '));
  return word.size() <= kMaxMethodBytes &&
         absl::c_all_of(word, absl::ascii_isupper);
}

// Returns the offset of the first byte after the head, or npos if the head is
// incomplete.
size_t EndOfHead(absl::string_view bytes) {
  const size_t end = bytes.find("\r\n\r\n");
  const size_t bare = bytes.find("\n\n");  // from people who type the request
  return std::min(end, bare);
}

// Returns the path of a request's target, which may be a whole URL.
absl::string_view PathOf(absl::string_view target) {
  target = target.substr(0, target.find('?'));
  constexpr absl::string_view kScheme = "http://";
  if (!absl::StartsWithIgnoreCase(target, kScheme)) return target;
  return target.substr(
      std::min(target.find('/', kScheme.size()), target.size()));
}

}  // namespace

absl::StatusOr<absl::optional<HttpRequest>> ParseHttpRequest(
    absl::string_view bytes) {
  if (!MayBegin(bytes))
    return absl::InvalidArgumentError("the request is not HTTP/1");
  const size_t end = EndOfHead(bytes.substr(0, kMaxHeadBytes));
  if (end == absl::string_view::npos) {
    if (bytes.size() < kMaxHeadBytes) return absl::optional<HttpRequest>();
    return absl::InvalidArgumentError(
        absl::StrCat("a head of more than ", kMaxHeadBytes, " bytes"));
  }
  absl::string_view line = bytes.substr(0, bytes.find('\n'));
  line = absl::StripTrailingAsciiWhitespace(line);
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 || words[0].empty() ||
      !absl::StartsWith(words[2], "HTTP/1.")) {
    return absl::InvalidArgumentError("a bad request line");
  }
  HttpRequest request;
  request.method = std::string(words[0]);
  request.path = std::string(PathOf(words[1]));
  return absl::make_optional(std::move(request));
}

std::string EncodeHttpAnswer(absl::string_view status,
                             absl::string_view content_type,
                             size_t body_bytes) {
  return absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Type: ", content_type,
                      "\r\nContent-Length: ", body_bytes,
                      "\r\nConnection: close\r\n\r\n");
}

}  // namespace monitoring
}  // namespace penstock
