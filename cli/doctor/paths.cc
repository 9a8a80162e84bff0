// What the facts come to: which fabrics can carry a connection from here.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/doctor/probes.h"

namespace penstock::cli {
namespace {

PathVerdict No(const char* fabric, absl::string_view why) {
  return {fabric, false, std::string(why)};
}

PathVerdict JudgeShm(const Host& host) {
  if (!host.memfd.ok()) return No("shm", host.memfd.message());
  if (!host.unix_socket.ok()) return No("shm", host.unix_socket.message());
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
  if (!host.HasRdmaDevice() && !host.rdma.ok()) {
    return No("verbs", "no RDMA device here");
  }
  if (!host.rdma.ok()) return No("verbs", host.rdma.status().message());
  std::string text = "to machines that RDMA reaches from ";
  for (const auto& local : *host.rdma) {
    absl::StrAppend(&text, &local == &host.rdma->front() ? "" : ", ",
                    local.address);
  }
  return {"verbs", true, text};
}

}  // namespace

std::vector<PathVerdict> JudgePaths(const Host& host) {
  std::string stock;
  if (!host.grpc_mismatch.empty()) stock = "another gRPC is loaded";
  if (!host.settings.ok()) stock = "a setting is bad";
  if (host.settings.ok() && host.settings->policy == Policy::kOff) {
    stock = "PENSTOCK_POLICY=off";
  }
  if (!stock.empty()) {
    return {{"http2", true, absl::StrCat("stock gRPC only: ", stock)}};
  }
  std::vector<PathVerdict> verdicts = {
      JudgeShm(host),
      JudgeVerbs(host),
      {"tcp", true, "to every peer with Penstock"}};
  for (PathVerdict& each : verdicts) {
    if (host.settings->Allows(each.fabric)) continue;
    each = No(each.fabric.c_str(), "not in PENSTOCK_FABRICS");
  }
  // The lifeline: it carries what nothing else does, unless that is refused.
  if (!host.settings->Allows("tcp") &&
      host.settings->policy != Policy::kRequire) {
    verdicts.back() = {"tcp", true,
                       "where nothing else works; not in PENSTOCK_FABRICS"};
  }
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
        ProbeGrpc, ProbeSettings, ProbeCores, ProbeOpenFiles, ProbeClock,
        ProbeCuda}) {
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
