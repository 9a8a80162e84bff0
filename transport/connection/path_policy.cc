#include "transport/connection/path_policy.h"

#include "absl/strings/str_cat.h"

namespace penstock {
namespace connection {

absl::Status CheckPath(const Settings& settings,
                       const session::PathDescription& path) {
  if (settings.policy != Policy::kRequire || settings.Allows(path.fabric)) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      "Penstock policy is \"", settings.ToString(), "\", but ", path.reason,
      " (PENSTOCK_POLICY=prefer would fall back to tcp)"));
}

bool ToleratesTcp(const Settings& settings) {
  return settings.policy != Policy::kRequire ||
         settings.Allows(FabricName(Fabric::kTcp));
}

std::string PathText(const session::PathDescription& path) {
  std::string text = path.fabric;
  if (!path.detail.empty()) absl::StrAppend(&text, " (", path.detail, ")");
  if (!path.reason.empty()) {
    absl::StrAppend(&text, "; not better because ", path.reason);
  }
  return text;
}

}  // namespace connection
}  // namespace penstock
