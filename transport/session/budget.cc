#include "transport/session/budget.h"

#include "absl/strings/str_cat.h"

namespace penstock {
namespace session {

absl::Status Budget::Exceeded() const {
  if (used(Kind::kUnread) > limits_.unread_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the peer sent more than ", limits_.unread_bytes,
        " bytes that nobody has read, and should have announced them"));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the peer has not read ", limits_.unsent_answers_bytes,
                   " bytes of answers to what it sent"));
}

}  // namespace session
}  // namespace penstock
