#include "transport/settings.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace penstock {
namespace {

absl::Status BadValue(const char* variable, absl::string_view value,
                      absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(variable, "=", value, " is not a setting: use ", allowed));
}

absl::StatusOr<Policy> ParsePolicy(absl::string_view text) {
  for (Policy policy : {Policy::kRequire, Policy::kPrefer, Policy::kOff}) {
    if (text == PolicyName(policy)) return policy;
  }
  return BadValue("PENSTOCK_POLICY", text, "require, prefer or off");
}

absl::StatusOr<ShmSharing> ParseShmSharing(absl::string_view text) {
  for (ShmSharing sharing :
       {ShmSharing::kSameUid, ShmSharing::kCopy, ShmSharing::kOff}) {
    if (text == ShmSharingName(sharing)) return sharing;
  }
  return BadValue("PENSTOCK_SHM_SHARING", text, "same-uid, copy or off");
}

absl::StatusOr<std::vector<Fabric>> ParseFabrics(absl::string_view text) {
  std::vector<Fabric> fabrics;
  for (absl::string_view name : absl::StrSplit(text, ',')) {
    if (name == "shm") {
      fabrics.push_back(Fabric::kShm);
    } else if (name == "tcp") {
      fabrics.push_back(Fabric::kTcp);
    } else {
      return BadValue("PENSTOCK_FABRICS", text,
                      "a list of shm and tcp, best first: \"shm,tcp\"");
    }
  }
  return fabrics;
}

absl::Status CheckFabrics(const std::vector<Fabric>& fabrics) {
  if (fabrics.empty()) {
    return absl::InvalidArgumentError(
        "Options::fabrics is empty: name at least one fabric, or set the "
        "policy to off");
  }
  for (auto it = fabrics.begin(); it != fabrics.end(); ++it) {
    if (std::find(fabrics.begin(), it, *it) == it) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the list of fabrics names ", FabricName(*it),
                     " twice: name each fabric once, best first"));
  }
  return absl::OkStatus();
}

// Longer ones do not fit into a socket's path with a name behind them.
constexpr size_t kMaxShmDirectoryBytes = 65;

absl::StatusOr<std::string> ParseShmDirectory(absl::string_view text) {
  if (!absl::StartsWith(text, "/") || text.size() > kMaxShmDirectoryBytes ||
      absl::StrContains(text, "\n")) {
    return BadValue("PENSTOCK_SHM_DIRECTORY", text,
                    absl::StrCat("an absolute path of at most ",
                                 kMaxShmDirectoryBytes, " bytes"));
  }
  return std::string(text);
}

absl::StatusOr<std::string> ResolveShmDirectory(const Options& options) {
  if (options.shm_directory.has_value()) {
    if (options.shm_directory->empty()) return std::string();
    return ParseShmDirectory(*options.shm_directory);
  }
  const char* text = std::getenv("PENSTOCK_SHM_DIRECTORY");
  return text == nullptr ? std::string() : ParseShmDirectory(text);
}

}  // namespace

const char* FabricName(Fabric fabric) {
  switch (fabric) {
    case Fabric::kShm:
      return "shm";
    case Fabric::kTcp:
      return "tcp";
  }
  return "unknown";
}

const char* PolicyName(Policy policy) {
  switch (policy) {
    case Policy::kRequire:
      return "require";
    case Policy::kPrefer:
      return "prefer";
    case Policy::kOff:
      return "off";
  }
  return "unknown";
}

const char* ShmSharingName(ShmSharing sharing) {
  switch (sharing) {
    case ShmSharing::kSameUid:
      return "same-uid";
    case ShmSharing::kCopy:
      return "copy";
    case ShmSharing::kOff:
      return "off";
  }
  return "unknown";
}

bool Settings::Allows(const std::string& fabric) const {
  return std::any_of(fabrics.begin(), fabrics.end(),
                     [&](Fabric each) { return fabric == FabricName(each); });
}

std::string Settings::ToString() const {
  return absl::StrCat(
      PolicyName(policy), " ",
      absl::StrJoin(fabrics, ",",
                    [](std::string* out, Fabric fabric) {
                      out->append(FabricName(fabric));
                    }),
      shm_sharing == ShmSharing::kSameUid
          ? ""
          : absl::StrCat(" shm_sharing=", ShmSharingName(shm_sharing)),
      shm_directory.empty() ? ""
                            : absl::StrCat(" shm_directory=", shm_directory));
}

absl::StatusOr<Settings> ResolveSettings(const Options& options) {
  Settings settings;
  if (options.policy.has_value()) {
    settings.policy = *options.policy;
  } else if (const char* text = std::getenv("PENSTOCK_POLICY")) {
    absl::StatusOr<Policy> policy = ParsePolicy(text);
    if (!policy.ok()) return policy.status();
    settings.policy = *policy;
  }
  if (options.fabrics.has_value()) {
    settings.fabrics = *options.fabrics;
  } else {
    const char* text = std::getenv("PENSTOCK_FABRICS");
    absl::StatusOr<std::vector<Fabric>> fabrics =
        ParseFabrics(text == nullptr ? "shm,tcp" : text);
    if (!fabrics.ok()) return fabrics.status();
    settings.fabrics = *std::move(fabrics);
  }
  if (options.shm_sharing.has_value()) {
    settings.shm_sharing = *options.shm_sharing;
  } else if (const char* text = std::getenv("PENSTOCK_SHM_SHARING")) {
    absl::StatusOr<ShmSharing> sharing = ParseShmSharing(text);
    if (!sharing.ok()) return sharing.status();
    settings.shm_sharing = *sharing;
  }
  absl::StatusOr<std::string> directory = ResolveShmDirectory(options);
  if (!directory.ok()) return directory.status();
  settings.shm_directory = *std::move(directory);
  absl::Status status = CheckFabrics(settings.fabrics);
  if (!status.ok()) return status;
  return settings;
}

bool Requires(const Options& options) {
  if (options.policy.has_value()) return *options.policy == Policy::kRequire;
  const char* text = std::getenv("PENSTOCK_POLICY");
  return text != nullptr && absl::string_view(text) == "require";
}

absl::StatusOr<progress::PollingMode> ResolvePolling() {
  const char* text = std::getenv("PENSTOCK_POLLING");
  const absl::string_view value = text == nullptr ? "adaptive" : text;
  if (value == "adaptive") return progress::PollingMode::kAdaptive;
  if (value == "busy") return progress::PollingMode::kBusy;
  if (value == "event") return progress::PollingMode::kEvent;
  return BadValue("PENSTOCK_POLLING", value, "adaptive, busy or event");
}

}  // namespace penstock
