// Probes of the system's support for RDMA: libraries, modules, device files,
// locked memory, and the IP interfaces of InfiniBand.

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/doctor/probes.h"
#include "cli/text/units.h"
#include "transport/base/printable.h"
#include "transport/fabric/verbs/locked_memory.h"

namespace penstock::cli {
namespace {

namespace verbs = fabric::verbs;

constexpr char kGroup[] = "RDMA";
// The modules, in the order of their dependencies.
constexpr const char* kModules[] = {"ib_uverbs", "rdma_cm", "rdma_ucm"};
constexpr const char* kSoftware[] = {"rdma_rxe", "siw"};
constexpr char kContainerRemedy[] =
    "in a container: --device=/dev/infiniband; else: udev's rules of rdma-core";

// Returns true if a module is loaded or built in. A built-in module appears in
// /sys/module only if it has parameters.
bool HasModule(const Files& files, absl::string_view name) {
  if (files.Exists(absl::StrCat("/sys/module/", name))) return true;
  const absl::StatusOr<std::string> loaded = files.Read("/proc/modules");
  if (!loaded.ok()) return false;
  for (absl::string_view line : absl::StrSplit(*loaded, '\n')) {
    if (line.substr(0, line.find(' ')) == name) return true;
  }
  return false;
}

Finding Libraries(const Host& host) {
  if (host.rdma_libraries.ok()) {
    return {kGroup, "libraries", Level::kOk, "libibverbs and librdmacm", ""};
  }
  return {kGroup, "libraries",
          host.HasRdmaDevice() ? Level::kProblem : Level::kNote,
          std::string(host.rdma_libraries.message()),
          "apt-get install libibverbs1 librdmacm1 ibverbs-providers"};
}

Finding Modules(const Host& host) {
  std::vector<std::string> loaded;
  std::vector<std::string> missing;
  for (const char* name : kModules) {
    (HasModule(host.files, name) ? loaded : missing).emplace_back(name);
  }
  for (const char* name : kSoftware) {
    if (HasModule(host.files, name)) loaded.emplace_back(name);
  }
  if (missing.empty()) {
    return {kGroup, "kernel modules", Level::kOk, absl::StrJoin(loaded, ", "),
            ""};
  }
  if (!host.HasRdmaDevice()) {
    return {kGroup, "kernel modules", Level::kOk, "not needed without a device",
            ""};
  }
  // True if the modules are certainly missing. If RDMA works, they may be built
  // in.
  const bool is_needed = !host.rdma.ok();
  return {kGroup, "kernel modules", is_needed ? Level::kProblem : Level::kOk,
          absl::StrCat("not loaded as modules: ", absl::StrJoin(missing, ", ")),
          is_needed ? absl::StrCat("modprobe -a ", absl::StrJoin(missing, " "))
                    : ""};
}

void CheckFile(const Host& host, const std::string& path, Findings* findings) {
  if (!host.files.Exists(path)) {
    findings->push_back({kGroup, "device files", Level::kProblem,
                         absl::StrCat(path, " is missing"), kContainerRemedy});
    return;
  }
  const absl::Status status = host.files.CanOpen(path);
  if (status.ok()) return;
  findings->push_back({kGroup, "device files", Level::kProblem,
                       std::string(status.message()),
                       absl::StrCat("let this user read and write ", path,
                                    " (group rdma, or udev's rules)")});
}

Findings DeviceFiles(const Host& host) {
  Findings findings;
  if (!host.HasRdmaDevice()) return findings;
  CheckFile(host, "/dev/infiniband/rdma_cm", &findings);
  const std::vector<std::string> devices =
      host.files.List("/sys/class/infiniband_verbs");
  std::vector<std::string> good = {"rdma_cm"};
  for (const std::string& name : devices) {
    // Skips other files of the folder, such as "abi_version".
    if (name.compare(0, 6, "uverbs") != 0) continue;
    CheckFile(host, absl::StrCat("/dev/infiniband/", base::Printable(name, 40)),
              &findings);
    good.push_back(base::Printable(name, 40));
  }
  if (findings.empty()) {
    findings.push_back(
        {kGroup, "device files", Level::kOk,
         absl::StrCat("/dev/infiniband: ", absl::StrJoin(good, ", ")), ""});
  }
  return findings;
}

}  // namespace

Findings ProbeRdmaFiles(const Host& host) {
  Findings findings = {Libraries(host), Modules(host)};
  const Findings files = DeviceFiles(host);
  findings.insert(findings.end(), files.begin(), files.end());
  return findings;
}

Findings ProbeLockedMemory(const Host& host) {
  const verbs::Options defaults;
  // The memory that one busy connection registers: docs/verbs.md, "Memory of a
  // connection".
  const uint64_t busy = defaults.exposed_bytes + defaults.read_bytes;
  const uint64_t limit = host.locked_memory;
  Finding finding{kGroup, "locked memory", Level::kOk, "", ""};
  if (limit == verbs::kUnlimited) {
    finding.text = "unlimited";
    return {finding};
  }
  finding.text = absl::StrCat(
      BytesText(limit), "; a busy connection locks up to ", BytesText(busy));
  if (!host.HasRdmaDevice()) {
    absl::StrAppend(&finding.text, ". It matters with RDMA only");
    return {finding};
  }
  const absl::Status enough = verbs::CheckLockedMemory(limit);
  if (!enough.ok()) {
    finding.level = Level::kProblem;
    finding.text =
        absl::StrCat(BytesText(limit), " is too little for an RDMA connection");
  } else if (limit < busy) {
    finding.level = Level::kNote;
  }
  if (finding.level != Level::kOk) {
    finding.remedy =
        "ulimit -l unlimited; LimitMEMLOCK=infinity of a systemd service; "
        "--ulimit memlock=-1 of a container";
  }
  return {finding};
}

Findings ProbeIpoib(const Host& host) {
  // The value of ARPHRD_INFINIBAND.
  constexpr char kInfiniBand[] = "32";
  Findings findings;
  for (const std::string& name : host.files.List("/sys/class/net")) {
    const std::string folder = absl::StrCat("/sys/class/net/", name);
    if (host.files.Line(absl::StrCat(folder, "/type")) != kInfiniBand) continue;
    const std::string state =
        host.files.Line(absl::StrCat(folder, "/operstate"));
    Finding finding{
        kGroup, base::Printable(name, 40), Level::kOk,
        absl::StrCat("IPoIB, ", host.files.Line(absl::StrCat(folder, "/mode")),
                     " mode, mtu ",
                     host.files.Line(absl::StrCat(folder, "/mtu")), ", ",
                     state),
        ""};
    if (state == "down") {
      finding.level = Level::kNote;
      finding.remedy = absl::StrCat("ip link set ", finding.subject, " up");
    }
    findings.push_back(finding);
  }
  return findings;
}

}  // namespace penstock::cli
