#include "ps/membership/keys.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "transport/base/printable.h"

namespace penstock::ps::membership {
namespace {

bool ConsistsOf(absl::string_view text, absl::string_view marks) {
  return std::all_of(text.begin(), text.end(), [marks](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::StrContains(marks, absl::string_view(&c, 1));
  });
}

absl::Status Bad(absl::string_view what, absl::string_view text,
                 absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      what, " '", base::Printable(text, kMaxNameBytes), "': ", why));
}

}  // namespace

std::string ServerKey(absl::string_view name) {
  return absl::StrCat(kServers, name);
}

std::string WorkerKey(uint32_t rank) { return absl::StrCat(kWorkers, rank); }

std::string LeavingKey(absl::string_view name) {
  return absl::StrCat(kLeaving, name);
}

absl::Status CheckServerName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return Bad("server name", name,
               absl::StrCat("it needs 1 to ", kMaxNameBytes, " bytes"));
  }
  if (!ConsistsOf(name, "-_.:[]")) {
    return Bad("server name", name,
               "it may have letters, digits, '-', '_', '.' and ':'");
  }
  return absl::OkStatus();
}

absl::Status CheckPrefix(absl::string_view prefix) {
  if (prefix.empty() || prefix.size() > kMaxNameBytes) {
    return Bad("prefix", prefix,
               absl::StrCat("it needs 1 to ", kMaxNameBytes, " bytes"));
  }
  if (!ConsistsOf(prefix, "-_./") || absl::StartsWith(prefix, "/") ||
      absl::EndsWith(prefix, "/")) {
    return Bad("prefix", prefix,
               "it may have letters, digits, '-', '_', '.', and '/' between "
               "them");
  }
  return absl::OkStatus();
}

}  // namespace penstock::ps::membership
