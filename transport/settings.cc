#include "transport/settings.h"

#include <stdlib.h>  // secure_getenv

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
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

absl::StatusOr<std::vector<Fabric>> ParseFabrics(absl::string_view text) {
  std::vector<Fabric> fabrics;
  for (absl::string_view name : absl::StrSplit(text, ',')) {
    bool known = false;
    for (Fabric fabric : {Fabric::kShm, Fabric::kVerbs, Fabric::kTcp}) {
      if (name != FabricName(fabric)) continue;
      fabrics.push_back(fabric);
      known = true;
    }
    if (!known) {
      return BadValue("PENSTOCK_FABRICS", text,
                      "a list of shm, verbs and tcp, best first: "
                      "\"shm,verbs,tcp\"");
    }
  }
  absl::Status status = CheckFabrics(fabrics);
  if (!status.ok()) return status;
  return fabrics;
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

struct VerbsPort {
  std::string device;
  int port = 0;
};

// "mlx5_0" or "mlx5_0/1".
absl::StatusOr<VerbsPort> ParseVerbsDevice(absl::string_view text) {
  VerbsPort result;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('/', 1));
  result.device = std::string(parts.first);
  const bool has_port = absl::StrContains(text, "/");
  if (result.device.empty() ||
      (has_port && (!absl::SimpleAtoi(parts.second, &result.port) ||
                    result.port < 1 || result.port > 255))) {
    return BadValue("PENSTOCK_VERBS_DEVICE", text,
                    "a device, with a port of it or without: \"mlx5_0\", "
                    "\"mlx5_0/1\"");
  }
  return result;
}

// A number from 0, or from -1, which stands for any, to `max`.
struct Range {
  const char* variable;
  int min;
  int max;
};

absl::Status OutOfRange(const Range& range, absl::string_view value) {
  return BadValue(
      range.variable, value,
      absl::StrCat("0 to ", range.max, range.min < 0 ? ", or -1 for any" : ""));
}

absl::StatusOr<int> CheckRange(const Range& range, int value) {
  if (value >= range.min && value <= range.max) return value;
  return OutOfRange(range, absl::StrCat(value));
}

auto NumberIn(const Range& range) {
  return [range](absl::string_view text) -> absl::StatusOr<int> {
    int value = 0;
    if (absl::SimpleAtoi(text, &value)) return CheckRange(range, value);
    return OutOfRange(range, text);
  };
}

absl::StatusOr<DataProtection> ParseDataProtection(absl::string_view text) {
  for (DataProtection protection :
       {DataProtection::kRequired, DataProtection::kNone}) {
    if (text == DataProtectionName(protection)) return protection;
  }
  return BadValue("PENSTOCK_DATA_PROTECTION", text, "required or none");
}

// What one frame holds.
constexpr int kMaxEagerBytes = 16352;
// Below this a piece costs as much as its bytes; above, no fabric reads it.
constexpr int kMinChunkBytes = 4 * 1024;
constexpr int kMaxChunkBytes = 1024 * 1024;
constexpr Range kGidIndex = {"PENSTOCK_VERBS_GID_INDEX", -1, 255};
constexpr Range kTrafficClass = {"PENSTOCK_VERBS_TRAFFIC_CLASS", -1, 255};
// A TiB.
constexpr Range kCacheMib = {"PENSTOCK_VERBS_CACHE_MIB", 0, 1 << 20};

// Code wins over the environment, and that over what `out` holds.
template <typename T, typename Parse>
absl::Status Resolve(const absl::optional<T>& option, const char* variable,
                     Parse parse, T* out) {
  if (option.has_value()) {
    *out = *option;
    return absl::OkStatus();
  }
  const char* text = secure_getenv(variable);
  if (text == nullptr) return absl::OkStatus();
  absl::StatusOr<T> parsed = parse(text);
  if (parsed.ok()) *out = *std::move(parsed);
  return parsed.status();
}

absl::Status ResolveShm(const Options& options, Settings* settings) {
  absl::Status status = Resolve(options.shm_sharing, "PENSTOCK_SHM_SHARING",
                                ParseShmSharing, &settings->shm_sharing);
  if (!status.ok()) return status;
  status = Resolve(options.shm_directory, "PENSTOCK_SHM_DIRECTORY",
                   ParseShmDirectory, &settings->shm_directory);
  if (!status.ok() || settings->shm_directory.empty()) return status;
  return ParseShmDirectory(settings->shm_directory).status();
}

absl::Status ResolveVerbs(const Options& options, Settings* settings) {
  absl::optional<VerbsPort> option;
  VerbsPort port;
  if (options.verbs_device.has_value()) {
    if (!options.verbs_device->empty()) {
      absl::StatusOr<VerbsPort> parsed =
          ParseVerbsDevice(*options.verbs_device);
      if (!parsed.ok()) return parsed.status();
      port = *parsed;
    }
    option = port;
  }
  absl::Status status =
      Resolve(option, "PENSTOCK_VERBS_DEVICE", ParseVerbsDevice, &port);
  settings->verbs_device = port.device;
  settings->verbs_port = port.port;
  const auto number = [&status](const absl::optional<int>& field,
                                const Range& range, int* out) {
    if (!status.ok()) return;
    status = Resolve(field, range.variable, NumberIn(range), out);
    if (status.ok()) status = CheckRange(range, *out).status();
  };
  number(options.verbs_gid_index, kGidIndex, &settings->verbs_gid_index);
  number(options.verbs_traffic_class, kTrafficClass,
         &settings->verbs_traffic_class);
  number(options.verbs_cache_mib, kCacheMib, &settings->verbs_cache_mib);
  return status;
}

// A size, or 0 where it is left to what is measured.
absl::Status ResolveSize(const absl::optional<int>& option,
                         const char* variable, int least, int most, int* out) {
  const auto check = [=](int value, absl::string_view text) -> absl::Status {
    if (value == 0 || (value >= least && value <= most)) {
      return absl::OkStatus();
    }
    return BadValue(
        variable, text,
        absl::StrCat(least, " to ", most, ", or 0 for what is measured"));
  };
  const auto parse = [=](absl::string_view text) -> absl::StatusOr<int> {
    int value = -1;
    if (!absl::SimpleAtoi(text, &value)) value = -1;
    absl::Status status = check(value, text);
    if (!status.ok()) return status;
    return value;
  };
  absl::Status status = Resolve(option, variable, parse, out);
  if (!status.ok()) return status;
  return check(*out, absl::StrCat(*out));
}

absl::Status ResolveSizes(const Options& options, Settings* settings) {
  absl::Status status =
      ResolveSize(options.eager_max_bytes, "PENSTOCK_EAGER_MAX", 1,
                  kMaxEagerBytes, &settings->eager_max_bytes);
  if (!status.ok()) return status;
  return ResolveSize(options.chunk_bytes, "PENSTOCK_CHUNK", kMinChunkBytes,
                     kMaxChunkBytes, &settings->chunk_bytes);
}

}  // namespace

const char* FabricName(Fabric fabric) {
  switch (fabric) {
    case Fabric::kShm:
      return "shm";
    case Fabric::kVerbs:
      return "verbs";
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

const char* DataProtectionName(DataProtection protection) {
  switch (protection) {
    case DataProtection::kRequired:
      return "required";
    case DataProtection::kNone:
      return "none";
  }
  return "unknown";
}

bool Settings::Allows(const std::string& fabric) const {
  return std::any_of(fabrics.begin(), fabrics.end(),
                     [&](Fabric each) { return fabric == FabricName(each); });
}

bool Settings::MayExpose() const {
  return data_protection == DataProtection::kNone &&
         Allows(FabricName(Fabric::kVerbs));
}

std::string Settings::ToString() const {
  std::string text = absl::StrCat(
      PolicyName(policy), " ",
      absl::StrJoin(fabrics, ",", [](std::string* out, Fabric fabric) {
        out->append(FabricName(fabric));
      }));
  if (shm_sharing != ShmSharing::kSameUid) {
    absl::StrAppend(&text, " shm_sharing=", ShmSharingName(shm_sharing));
  }
  if (!shm_directory.empty()) {
    absl::StrAppend(&text, " shm_directory=", shm_directory);
  }
  if (!verbs_device.empty()) {
    absl::StrAppend(&text, " verbs_device=", verbs_device);
  }
  if (verbs_port != 0) absl::StrAppend(&text, "/", verbs_port);
  if (verbs_gid_index >= 0) {
    absl::StrAppend(&text, " verbs_gid_index=", verbs_gid_index);
  }
  if (verbs_traffic_class >= 0) {
    absl::StrAppend(&text, " verbs_traffic_class=", verbs_traffic_class);
  }
  if (verbs_cache_mib != Settings().verbs_cache_mib) {
    absl::StrAppend(&text, " verbs_cache_mib=", verbs_cache_mib);
  }
  if (data_protection != DataProtection::kRequired) {
    absl::StrAppend(&text,
                    " data_protection=", DataProtectionName(data_protection));
  }
  if (eager_max_bytes != 0) {
    absl::StrAppend(&text, " eager_max_bytes=", eager_max_bytes);
  }
  if (chunk_bytes != 0) absl::StrAppend(&text, " chunk_bytes=", chunk_bytes);
  return text;
}

absl::StatusOr<Settings> ResolveSettings(const Options& options) {
  Settings settings;
  settings.fabrics = {Fabric::kShm, Fabric::kVerbs, Fabric::kTcp};
  absl::Status status =
      Resolve(options.policy, "PENSTOCK_POLICY", ParsePolicy, &settings.policy);
  if (!status.ok()) return status;
  status = Resolve(options.fabrics, "PENSTOCK_FABRICS", ParseFabrics,
                   &settings.fabrics);
  if (!status.ok()) return status;
  status = CheckFabrics(settings.fabrics);
  if (!status.ok()) return status;
  status = ResolveShm(options, &settings);
  if (!status.ok()) return status;
  status = ResolveVerbs(options, &settings);
  if (!status.ok()) return status;
  status = ResolveSizes(options, &settings);
  if (!status.ok()) return status;
  status = Resolve(options.data_protection, "PENSTOCK_DATA_PROTECTION",
                   ParseDataProtection, &settings.data_protection);
  if (!status.ok()) return status;
  return settings;
}

bool Requires(const Options& options) {
  if (options.policy.has_value()) return *options.policy == Policy::kRequire;
  const char* text = secure_getenv("PENSTOCK_POLICY");
  return text != nullptr && absl::string_view(text) == "require";
}

absl::StatusOr<progress::PollingMode> ResolvePolling() {
  const char* text = secure_getenv("PENSTOCK_POLLING");
  const absl::string_view value = text == nullptr ? "adaptive" : text;
  if (value == "adaptive") return progress::PollingMode::kAdaptive;
  if (value == "busy") return progress::PollingMode::kBusy;
  if (value == "event") return progress::PollingMode::kEvent;
  return BadValue("PENSTOCK_POLLING", value, "adaptive, busy or event");
}

absl::StatusOr<fabric::shm::HugePages> ResolveShmHugePages() {
  using fabric::shm::HugePages;
  const char* text = secure_getenv("PENSTOCK_SHM_HUGE_PAGES");
  const absl::string_view value = text == nullptr ? "transparent" : text;
  if (value == "transparent") return HugePages::kTransparent;
  if (value == "reserved") return HugePages::kReserved;
  if (value == "off") return HugePages::kOff;
  return BadValue("PENSTOCK_SHM_HUGE_PAGES", value,
                  "transparent, reserved or off");
}

}  // namespace penstock
