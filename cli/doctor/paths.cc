// Judges from the facts which fabrics can carry a connection from this host.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/doctor/probes.h"

namespace penstock::cli {
namespace {

PathVerdict No(const std::string& fabric, absl::string_view why) {
  return {fabric, false, std::string(why)};
}

PathVerdict JudgeShm(const Host& host) {
  switch (host.settings->shm_sharing) {
    case ShmSharing::kOff:
      return No("shm", "PENSTOCK_SHM_SHARING=off");
    case ShmSharing::kCopy:
      return {"shm", true,
              "to processes of this machine; large messages are copied"};
    case ShmSharing::kSameUid:
      return {"shm", true,
              "to processes of this machine; in place if the user is the same"};
  }
  return No("shm", "unknown setting");
}

PathVerdict JudgeVerbs(const Host& host) {
  std::string text = "to machines that RDMA reaches";
  if (!host.rdma.ok()) return {"verbs", true, text};
  for (const auto& local : *host.rdma) {
    absl::StrAppend(&text, &local == &host.rdma->front() ? " from " : ", ",
                    local.address);
  }
  return {"verbs", true, text};
}

// Returns the result of the trial, or the reason why there was none.
PathVerdict JudgeFabric(const Host& host, Fabric fabric) {
  const std::string name = FabricName(fabric);
  if (!host.settings->Allows(name)) {
    return No(name, "not in PENSTOCK_FABRICS");
  }
  const auto trial = host.trials.find(name);
  if (trial == host.trials.end()) {
    return No(name, "behind tcp in PENSTOCK_FABRICS, so it is not tried");
  }
  if (fabric == Fabric::kShm &&
      (trial->second.ok() || host.settings->shm_sharing == ShmSharing::kOff)) {
    return JudgeShm(host);
  }
  if (trial->second.ok()) return JudgeVerbs(host);
  const bool has_none = fabric == Fabric::kVerbs && !host.HasRdmaDevice();
  return No(name, has_none ? "no RDMA device here" : trial->second.message());
}

PathVerdict JudgeTcp(const Host& host) {
  if (host.settings->Allows("tcp")) {
    return {"tcp", true, "to every peer with Penstock"};
  }
  if (host.settings->policy == Policy::kRequire) {
    return No("tcp", "not in PENSTOCK_FABRICS");
  }
  // Reports tcp as the fallback of all other fabrics, unless tcp is disabled.
  return {"tcp", true, "where nothing else works; not in PENSTOCK_FABRICS"};
}

// Returns the reason why connections of this process cannot use Penstock, or
// "".
std::string WhyOff(const Host& host) {
  if (!host.grpc_mismatch.empty()) return "another gRPC is loaded";
  if (!host.settings.ok()) return "a setting is bad";
  return host.settings->policy == Policy::kOff ? "PENSTOCK_POLICY=off" : "";
}

bool Requires(const Host& host) {
  const auto policy = host.environment.find("PENSTOCK_POLICY");
  return policy != host.environment.end() && policy->second == "require";
}

}  // namespace

std::vector<PathVerdict> JudgePaths(const Host& host) {
  const std::string off = WhyOff(host);
  if (!off.empty() && Requires(host)) {
    return {No("http2", absl::StrCat("PENSTOCK_POLICY=require, and ", off))};
  }
  if (!off.empty()) {
    return {{"http2", true, absl::StrCat("stock gRPC only: ", off)}};
  }
  std::vector<PathVerdict> verdicts = {JudgeFabric(host, Fabric::kShm),
                                       JudgeFabric(host, Fabric::kVerbs),
                                       JudgeTcp(host)};
  if (host.settings->policy != Policy::kRequire) {
    verdicts.push_back({"http2", true, "to stock gRPC peers"});
  }
  return verdicts;
}

Findings ProbeAll(const Host& host) {
  Findings all;
  for (const auto probe :
       {ProbeDevices, ProbeRdmaFiles, ProbeLockedMemory, ProbeIpoib,
        ProbeSharedMemory, ProbeHugePages, ProbeMemoryLimit, ProbePtrace,
        ProbeGrpc, ProbePython, ProbeSettings, ProbeCores, ProbeOpenFiles,
        ProbeClock, ProbeCuda}) {
    for (Finding& finding : probe(host)) all.push_back(std::move(finding));
  }
  return all;
}

const char* LevelName(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kNote:
      return "note";
    case Level::kProblem:
      return "problem";
  }
  return "unknown";
}

}  // namespace penstock::cli
