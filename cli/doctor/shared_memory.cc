// Probes of shm's requirements: anonymous memory, UNIX sockets, a common
// network namespace, a working trial, and the memory limit and page size.

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/doctor/probes.h"
#include "cli/text/units.h"

namespace penstock::cli {
namespace {

using fabric::shm::HugePages;

constexpr char kGroup[] = "Shared memory";
// The default limit of the arena: see Arena::DefaultBudget().
constexpr uint64_t kMaxArenaBytes = uint64_t{1} << 30;
// The value by which control groups of version 1 express "no limit", rounded to
// pages.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

Finding Call(const char* subject, const absl::Status& status, const char* text,
             const char* remedy) {
  if (status.ok()) return {kGroup, subject, Level::kOk, text, ""};
  return {kGroup, subject, Level::kProblem, std::string(status.message()),
          remedy};
}

// Returns the engine of this container, or "" outside a container.
std::string ContainerOf(const Host& host) {
  if (host.files.Exists("/.dockerenv")) return "Docker";
  if (host.environment.count("KUBERNETES_SERVICE_HOST") > 0) {
    return "Kubernetes";
  }
  if (host.files.Exists("/run/.containerenv")) return "Podman";
  return host.files.Line("/run/systemd/container");
}

Finding Container(const Host& host) {
  const std::string engine = ContainerOf(host);
  Finding finding{kGroup, "container", Level::kOk, "no", ""};
  if (engine.empty()) return finding;
  finding.text = absl::StrCat(
      "in a container (", engine,
      "): shm reaches processes of the same network namespace only");
  if (host.settings.ok() && !host.settings->shm_directory.empty()) {
    finding.text = absl::StrCat("in a container (", engine,
                                "), with PENSTOCK_SHM_DIRECTORY");
    return finding;
  }
  finding.level = Level::kNote;
  finding.remedy =
      "for other containers of this machine: one volume for both, and "
      "PENSTOCK_SHM_DIRECTORY=where it is mounted; or a common network "
      "(one pod, --network=container:NAME)";
  return finding;
}

// Reports the trial of shm, which may fail even if each system call works.
Findings Trial(const Host& host) {
  const auto trial = host.trials.find("shm");
  if (trial == host.trials.end() || !host.settings.ok() ||
      host.settings->shm_sharing == ShmSharing::kOff) {
    return {};
  }
  Finding finding{kGroup, "trial", Level::kOk,
                  "this process reaches itself over shm", ""};
  if (trial->second.ok()) return {finding};
  finding.level = Level::kProblem;
  finding.text = std::string(trial->second.message());
  if (absl::StrContains(finding.text, "boot_id")) {
    finding.remedy =
        "mount -t proc proc /proc, in a chroot too; a service must not have "
        "ProcSubset=pid";
  }
  return {finding};
}

Findings Directory(const Host& host) {
  if (!host.settings.ok() || host.settings->shm_directory.empty()) return {};
  const std::string& path = host.settings->shm_directory;
  const absl::Status status = host.files.CanOpen(path);
  if (status.ok()) {
    return {{kGroup, "directory", Level::kOk, path, ""}};
  }
  return {
      {kGroup, "directory", Level::kProblem,
       absl::StrCat("PENSTOCK_SHM_DIRECTORY: ", status.message()),
       absl::StrCat("mount the volume, and let this user write to ", path)}};
}

// Reports if the process has a separate user namespace. Without one, its
// mapping is "0 0 4294967295".
Finding UserNamespace(const Host& host) {
  const std::string line = host.files.Line("/proc/self/uid_map");
  const std::vector<std::string> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.size() == 3 && words[0] == "0" && words[1] == "0" &&
      words[2] == "4294967295") {
    return {kGroup, "user namespace", Level::kOk, "the machine's own", ""};
  }
  if (words.empty()) {
    return {kGroup, "user namespace", Level::kOk, "unknown: no uid_map", ""};
  }
  return {kGroup, "user namespace", Level::kNote,
          "a namespace of its own: CAP_IPC_LOCK may have no effect in it, and "
          "users of other namespaces count as other users",
          ""};
}

Finding TransparentPages(const Host& host) {
  const std::string word = ChosenWord(
      host.files.Line("/sys/kernel/mm/transparent_hugepage/shmem_enabled"));
  Finding finding{kGroup, "huge pages", Level::kOk,
                  absl::StrCat("shmem_enabled is ", word), ""};
  if (word.empty()) {
    finding.text = "this kernel has none for shared memory";
  } else if (word == "never" || word == "deny") {
    finding.level = Level::kNote;
    absl::StrAppend(&finding.text, ": large messages are in pages of 4 KiB");
    finding.remedy =
        "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled";
  }
  return finding;
}

Finding ReservedPages(const Host& host) {
  const char kFolder[] = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
  const uint64_t all =
      host.files.Number(absl::StrCat(kFolder, "nr_hugepages")).value_or(0);
  const uint64_t free =
      host.files.Number(absl::StrCat(kFolder, "free_hugepages")).value_or(0);
  Finding finding{
      kGroup, "huge pages", Level::kOk,
      absl::StrCat(free, " of ", all, " reserved pages of 2 MiB are free"), ""};
  if (free == 0) {
    finding.level = Level::kProblem;
    finding.remedy = "sysctl vm.nr_hugepages=512, which is 1 GiB";
  }
  return finding;
}

// Returns the folder of this process's group below the controller's, "/a/b", in
// either version's hierarchy. Empty if the process is in no group.
std::string GroupIn(const std::string& text, bool* is_version_2) {
  std::string unified;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    for (absl::string_view controller : absl::StrSplit(parts[1], ',')) {
      if (controller != "memory") continue;
      *is_version_2 = false;
      return std::string(parts[2]);
    }
    if (parts[0] == "0" && parts[1].empty()) unified = std::string(parts[2]);
  }
  *is_version_2 = true;
  return unified;
}

// Returns the lowest limit of the group and its ancestors.
uint64_t GroupLimit(const Files& files) {
  bool is_version_2 = true;
  std::string group =
      GroupIn(files.Read("/proc/self/cgroup").value_or(""), &is_version_2);
  const std::string root =
      is_version_2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
  const std::string name =
      is_version_2 ? "/memory.max" : "/memory.limit_in_bytes";
  if (group == "/") group.clear();
  uint64_t limit = kNoLimit;
  while (true) {
    limit = std::min(
        limit,
        files.Number(absl::StrCat(root, group, name)).value_or(kNoLimit));
    if (group.empty()) return limit;
    const size_t slash = group.rfind('/');
    group.resize(slash == std::string::npos ? 0 : slash);
  }
}

}  // namespace

Findings ProbeSharedMemory(const Host& host) {
  Findings findings = {
      Call("memory", host.memfd,
           "anonymous (memfd); the size of /dev/shm does not matter",
           "allow memfd_create: sysctl vm.memfd_noexec=1 or lower, and the "
           "container's seccomp profile"),
      Call("sockets", host.unix_socket, "abstract UNIX sockets",
           "allow AF_UNIX sockets: RestrictAddressFamilies= of the service"),
      Container(host), UserNamespace(host)};
  for (const Findings& more : {Directory(host), Trial(host)}) {
    findings.insert(findings.end(), more.begin(), more.end());
  }
  return findings;
}

Findings ProbeHugePages(const Host& host) {
  if (!host.huge_pages.ok()) return {};  // ProbeSettings() reports this error
  switch (*host.huge_pages) {
    case HugePages::kOff:
      return {{kGroup, "huge pages", Level::kOk,
               "off, by PENSTOCK_SHM_HUGE_PAGES", ""}};
    case HugePages::kReserved:
      return {ReservedPages(host)};
    case HugePages::kTransparent:
      return {TransparentPages(host)};
  }
  return {};
}

Findings ProbeMemoryLimit(const Host& host) {
  if (!host.arena_bytes.ok()) return {};  // ProbeSettings() reports this error
  const uint64_t limit = GroupLimit(host.files);
  Finding finding{kGroup, "memory limit", Level::kOk, "no control group's", ""};
  if (limit >= kNoLimit) return {finding};
  finding.text = absl::StrCat(
      BytesText(limit),
      ", of the control group; messages in shared memory count against it");
  const bool is_set = *host.arena_bytes > 0;
  if (is_set && limit < 2 * *host.arena_bytes) {
    finding.level = Level::kNote;
    finding.remedy =
        absl::StrCat("PENSTOCK_SHM_ARENA_MIB lets large messages take ",
                     BytesText(*host.arena_bytes),
                     ": raise the limit, or lower the setting");
  } else if (!is_set && limit < 4 * kMaxArenaBytes) {
    finding.level = Level::kNote;
    finding.remedy = absl::StrCat(
        "large messages over shm get a quarter of it, ", BytesText(limit / 4),
        ", and go over tcp beyond that: raise the limit, or set "
        "PENSTOCK_SHM_ARENA_MIB");
  }
  return {finding};
}

Findings ProbePtrace(const Host& host) {
  const std::string scope =
      host.files.Line("/proc/sys/kernel/yama/ptrace_scope");
  return {{kGroup, "ptrace scope", Level::kOk,
           absl::StrCat(scope.empty() ? "none" : scope,
                        "; does not matter: nothing is read by "
                        "process_vm_readv"),
           ""}};
}

}  // namespace penstock::cli
