#include "transport/settings/settings.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "transport/settings/shm_arena.h"
#include "transport/settings/table.h"
#include "transport/settings/tcp_sockets.h"

namespace penstock {
namespace {

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

}  // namespace

std::string FabricName(Fabric fabric) {
  return Words(kFabricWords).ToText(fabric);
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
  // Lists the policy and the fabrics always, other settings only if they differ
  // from the default.
  std::string text =
      absl::StrCat(kPolicy.ToText(*this), " ", kFabrics.ToText(*this));
  const Settings defaults;
  const auto append = [&](const auto& row) {
    const std::string value = row.ToText(*this);
    if (value == row.ToText(defaults)) return;
    absl::StrAppend(&text, " ", row.name(), "=", value);
  };
  std::apply([&](const auto&, const auto&,
                 const auto&... rows) { (append(rows), ...); },
             kRows);
  return text;
}

absl::StatusOr<Settings> ResolveSettings(const Options& options) {
  Settings settings;
  absl::Status status;
  std::apply(
      [&](const auto&... rows) {
        (status.Update(rows.Resolve(options, &settings)), ...);
      },
      kRows);
  status.Update(CheckFabrics(settings.fabrics));
  if (!status.ok()) return status;
  return settings;
}

bool Requires(const Options& options) {
  Settings settings;
  return kPolicy.Resolve(options, &settings).ok() &&
         settings.policy == Policy::kRequire;
}

absl::StatusOr<progress::PollingMode> ResolvePolling() {
  return kPolling.Resolve();
}

absl::StatusOr<fabric::shm::HugePages> ResolveShmHugePages() {
  return kShmHugePages.Resolve();
}

absl::StatusOr<uint64_t> ResolveShmArenaBytes() {
  const absl::StatusOr<int> mib = kShmArenaMib.Resolve();
  if (!mib.ok()) return mib.status();
  return static_cast<uint64_t>(*mib) << 20;
}

absl::StatusOr<int> ResolveTcpSockets() { return kTcpSockets.Resolve(); }

absl::StatusOr<StubMemory> ResolveStubMemory() { return kStubMemory.Resolve(); }

absl::StatusOr<std::string> ResolveMetrics() { return kMetrics.Resolve(); }

absl::StatusOr<std::string> ResolveTrace() { return kTrace.Resolve(); }

absl::StatusOr<std::string> ResolveRecord() { return kRecord.Resolve(); }

absl::StatusOr<StatusSocket> ResolveStatusSocket() {
  return kStatusSocket.Resolve();
}

}  // namespace penstock
