// Probes of the process and the machine: gRPC's release, settings, cores,
// descriptors, the clock, and GPUs.

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/doctor/probes.h"
#include "transport/base/flag_errors.h"
#include "transport/base/printable.h"
#include "transport/settings/description.h"

namespace penstock::cli {
namespace {

constexpr char kGroup[] = "Process";
constexpr char kPrefix[] = "PENSTOCK_";
constexpr size_t kMaxTextBytes = 100;
// The number of open descriptors up to which the doctor gives a note. A server
// with this many connections needs more.
constexpr uint64_t kFewFiles = 1024;
// The number of descriptors of a connection: a socket, and some more with shm
// or verbs.
constexpr uint64_t kFilesOfConnection = 4;

// Variables of Penstock's programs other than the transport:
// docs/tensorflow.md, docs/testing.md, docs/gpu/kernels.md.
constexpr const char* kVariablesOfOthers[] = {
    "PENSTOCK_BAZEL_OUTPUT_BASE",
    "PENSTOCK_CUDA",
    "PENSTOCK_ETCD_CA",
    "PENSTOCK_ETCD_CERT",
    "PENSTOCK_ETCD_KEY",
    "PENSTOCK_ETCD_PASSWORD_FILE",
    "PENSTOCK_ETCD_USER",
    "PENSTOCK_GRPC_HOSTS",
    "PENSTOCK_LIBRARY",
    "PENSTOCK_TENSORFLOW",
    "PENSTOCK_TENSORFLOW_ALL_REDUCE",
    "PENSTOCK_TENSORFLOW_HELD_MIB",
    "PENSTOCK_TENSORFLOW_MEMORY",
    "PENSTOCK_TORCH",
};

std::vector<std::string> KnownVariables() {
  std::vector<std::string> names(std::begin(kVariablesOfOthers),
                                 std::end(kVariablesOfOthers));
  for (const Description& each : DescribeSettings()) {
    names.push_back(each.variable);
  }
  return names;
}

Finding UnknownVariable(const std::string& name) {
  const std::string nearest = base::Nearest(name, KnownVariables());
  return {kGroup, "settings", Level::kProblem,
          absl::StrCat(base::Printable(name, kMaxTextBytes),
                       " is not a setting, and has no effect"),
          nearest.empty() ? "docs/settings.md has all settings"
                          : absl::StrCat("did you mean ", nearest, "?")};
}

Findings Variable(const std::string& name, const std::string& value) {
  const std::vector<std::string> known = KnownVariables();
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    return {UnknownVariable(name)};
  }
  if (value.empty()) {
    return {{kGroup, "settings", Level::kOk,
             absl::StrCat(name, " is empty, which counts as unset"), ""}};
  }
  const absl::Status status = CheckVariable(name, value);
  if (absl::IsInvalidArgument(status)) {
    return {{kGroup, "settings", Level::kProblem,
             base::Printable(status.message(), 3 * kMaxTextBytes),
             absl::StrCat("unset ", name, ", or set one of these")}};
  }
  return {{kGroup, "settings", Level::kOk,
           absl::StrCat(name, "=", base::Printable(value, kMaxTextBytes)), ""}};
}

bool IsBusy(const Host& host) {
  return host.polling.ok() && *host.polling == progress::PollingMode::kBusy;
}

}  // namespace

Findings ProbeGrpc(const Host& host) {
  if (host.grpc_mismatch.empty()) {
    return {{kGroup, "gRPC", Level::kOk,
             absl::StrCat(host.grpc_loaded, ", the release this is built for"),
             ""}};
  }
  return {{kGroup, "gRPC", Level::kProblem, host.grpc_mismatch,
           absl::StrCat("load the libgrpc of release ", host.grpc_built_for,
                        " (see: ldd, LD_LIBRARY_PATH); for programs with gRPC "
                        "1.60 or later, see docs/current_grpc.md")}};
}

Findings ProbeSettings(const Host& host) {
  Findings findings;
  bool has_problem = false;
  for (const auto& [name, value] : host.environment) {
    if (!absl::StartsWith(name, kPrefix)) continue;
    for (Finding& finding : Variable(name, value)) {
      has_problem |= finding.level == Level::kProblem;
      findings.push_back(std::move(finding));
    }
  }
  // Reports an error that involves several values, such as a fabric that is
  // listed twice.
  if (!host.settings.ok() && !has_problem) {
    findings.push_back({kGroup, "settings", Level::kProblem,
                        std::string(host.settings.status().message()), ""});
  }
  if (findings.empty()) {
    findings.push_back({kGroup, "settings", Level::kOk,
                        "no PENSTOCK_ variable is set: the defaults hold", ""});
  }
  return findings;
}

Findings ProbeCores(const Host& host) {
  Finding finding{kGroup, "cores", Level::kOk, "", ""};
  finding.text = host.usable_cores < host.cores
                     ? absl::StrFormat("%d of %d, by affinity or quota",
                                       host.usable_cores, host.cores)
                     : absl::StrCat(host.usable_cores);
  if (IsBusy(host) && host.usable_cores < 2) {
    finding.level = Level::kProblem;
    absl::StrAppend(&finding.text,
                    "; PENSTOCK_POLLING=busy keeps the only one from others");
    finding.remedy = "unset PENSTOCK_POLLING, or allow more cores";
  } else if (IsBusy(host)) {
    absl::StrAppend(&finding.text,
                    "; polling is busy: each thread that waits "
                    "takes one");
  } else if (host.usable_cores < 2) {
    finding.level = Level::kNote;
    absl::StrAppend(&finding.text,
                    "; two processes that poll take it from one another");
    finding.remedy = "two cores or more make the most of shm";
  } else {
    absl::StrAppend(&finding.text, "; at most as many threads poll");
  }
  return {finding};
}

Findings ProbeOpenFiles(const Host& host) {
  Finding finding{kGroup, "open files", Level::kOk,
                  absl::StrCat(host.open_files), ""};
  if (host.open_files <= kFewFiles) {
    absl::StrAppend(&finding.text, ", for about ",
                    host.open_files / kFilesOfConnection, " connections");
  }
  if (host.open_files < kFewFiles) {
    finding.level = Level::kNote;
    finding.remedy =
        absl::StrCat("ulimit -n ", std::max(host.open_files_hard, kFewFiles));
  }
  return {finding};
}

Findings ProbeClock(const Host& host) {
  const std::string source = host.files.Line(
      "/sys/devices/system/clocksource/clocksource0/current_clocksource");
  Finding finding{kGroup, "clock", Level::kOk, source, ""};
  if (source.empty()) {
    finding.text = "unknown";
  } else if (source == "hpet" || source == "acpi_pm" || source == "jiffies" ||
             source == "refined-jiffies") {
    finding.level = Level::kNote;
    absl::StrAppend(&finding.text,
                    ": each reading is a slow system call, and polling "
                    "reads it often");
    finding.remedy =
        "boot with clocksource=tsc tsc=reliable, if the processor's is stable";
  }
  return {finding};
}

Findings ProbeCuda(const Host& host) {
  constexpr char kGpu[] = "GPU";
  if (absl::IsNotFound(host.cuda.status())) {
    return {{kGpu, "CUDA", Level::kOk, "no driver, or no device, here", ""}};
  }
  if (!host.cuda.ok()) {
    return {{kGpu, "CUDA", Level::kNote,
             std::string(host.cuda.status().message()), "see: nvidia-smi"}};
  }
  const int version = host.cuda->version;
  Findings findings = {
      {kGpu, "CUDA", Level::kOk,
       absl::StrFormat("%d.%d", version / 1000, version % 1000 / 10), ""}};
  const bool has_peermem = host.files.Exists("/sys/module/nvidia_peermem");
  for (const device::Traits& gpu : host.cuda->devices) {
    const bool by_peermem = gpu.has_gpu_direct && has_peermem;
    const std::string way = by_peermem        ? "nvidia_peermem"
                            : gpu.has_dma_buf ? "DMA-BUF"
                                              : "";
    findings.push_back(
        {kGpu, gpu.pci_address, Level::kOk,
         absl::StrCat(base::Printable(gpu.name, kMaxTextBytes),
                      ": tensors are copied by the "
                      "host; GPUDirect is ",
                      way.empty() ? "not set up" : "there, by " + way,
                      ", and Penstock does not use it yet"),
         ""});
  }
  return findings;
}

}  // namespace penstock::cli
