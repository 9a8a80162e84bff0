#include "collectives/fault.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock::collectives {
namespace {

absl::StatusCode CodeOf(Fault fault) {
  switch (fault) {
    case Fault::kMismatch:
      return absl::StatusCode::kInvalidArgument;
    case Fault::kLate:
      return absl::StatusCode::kDeadlineExceeded;
    case Fault::kAborted:
      return absl::StatusCode::kCancelled;
    case Fault::kFailed:
      return absl::StatusCode::kInternal;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

absl::string_view Text(Fault fault) {
  switch (fault) {
    case Fault::kDied:
      return "has died";
    case Fault::kSilent:
      return "does not respond: is its process stopped?";
    case Fault::kLeft:
      return "has left the group";
    case Fault::kMismatch:
      return "called another operation";
    case Fault::kLate:
      return "did not call the operation in time";
    case Fault::kAborted:
      return "aborted the group";
    case Fault::kFailed:
    case Fault::kNone:
      break;
  }
  return "failed";
}

absl::Status StatusOf(Fault fault, int culprit, const std::string& detail) {
  return absl::Status(CodeOf(fault),
                      detail.empty()
                          ? absl::StrCat("rank ", culprit, " ", Text(fault))
                          : detail);
}

}  // namespace penstock::collectives
