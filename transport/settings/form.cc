#include "transport/settings/form.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "transport/settings/http_address.h"
#include "transport/settings/verbs_device.h"

namespace penstock {
absl::optional<int> Number::Parse(absl::string_view text) const {
  int value = 0;
  if (!absl::SimpleAtoi(text, &value) || !Accepts(value)) return absl::nullopt;
  return value;
}

bool Number::Accepts(int value) const {
  return (value >= min && value <= max) ||
         (special_means != nullptr && value == special);
}

std::string Number::ToText(int value) const { return absl::StrCat(value); }

std::string Number::Allowed() const {
  std::string text = absl::StrCat(min, " to ", max);
  if (special_means != nullptr) {
    absl::StrAppend(&text, ", or ", special, " for ", special_means);
  }
  return text;
}

absl::optional<std::string> Directory::Parse(absl::string_view text) const {
  if (!absl::StartsWith(text, "/") || text.size() > max_bytes ||
      absl::StrContains(text, "\n")) {
    return absl::nullopt;
  }
  return std::string(text);
}

bool Directory::Accepts(const std::string& path) const {
  return path.empty() || Parse(path).has_value();
}

std::string Directory::Allowed() const {
  return absl::StrCat("an absolute path of at most ", max_bytes, " bytes");
}

absl::optional<std::string> File::Parse(absl::string_view text) const {
  if (!absl::StartsWith(text, "/") || absl::EndsWith(text, "/") ||
      absl::StrContains(text, "\n")) {
    return absl::nullopt;
  }
  return std::string(text);
}

absl::optional<std::string> HttpAddressText::Parse(
    absl::string_view text) const {
  if (!HttpAddress::Parse(text).has_value()) return absl::nullopt;
  return std::string(text);
}

absl::optional<std::string> DeviceText::Parse(absl::string_view text) const {
  if (text.empty() || !VerbsDevice::Parse(text).has_value()) {
    return absl::nullopt;
  }
  return std::string(text);
}

bool DeviceText::Accepts(const std::string& device) const {
  return VerbsDevice::Parse(device).has_value();
}

std::string DeviceText::Allowed() const {
  return "a device, with a port of it or without: \"mlx5_0\", \"mlx5_0/1\"";
}

}  // namespace penstock
