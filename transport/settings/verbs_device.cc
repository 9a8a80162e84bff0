#include "transport/settings/verbs_device.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace penstock {
namespace {

// The highest port of a device, since a port number is one byte.
constexpr int kMaxPort = 255;

}  // namespace

absl::optional<VerbsDevice> VerbsDevice::Parse(absl::string_view text) {
  VerbsDevice device;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('/', 1));
  device.name = std::string(parts.first);
  if (!absl::StrContains(text, "/")) return device;
  if (device.name.empty() || !absl::SimpleAtoi(parts.second, &device.port) ||
      device.port < 1 || device.port > kMaxPort) {
    return absl::nullopt;
  }
  return device;
}

}  // namespace penstock
