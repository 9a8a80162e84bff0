#include "transport/base/status_util.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace base {
namespace {

absl::StatusCode CodeOf(int error_number) {
  switch (error_number) {
    case EAGAIN:
    case ENOMEM:
    case ENOSPC:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
      return absl::StatusCode::kResourceExhausted;
    case EPERM:
    case EACCES:
      return absl::StatusCode::kPermissionDenied;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case ENOENT:
    case ENOTCONN:
      return absl::StatusCode::kUnavailable;
    case ETIMEDOUT:
      return absl::StatusCode::kDeadlineExceeded;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status ErrnoStatus(int error_number, absl::string_view operation) {
  char text[128];
  // The GNU variant of strerror_r() returns the text, which may be outside the
  // buffer.
  const char* cause = strerror_r(error_number, text, sizeof text);
  return absl::Status(CodeOf(error_number),
                      absl::StrCat(operation, ": ", cause));
}

}  // namespace base
}  // namespace penstock
