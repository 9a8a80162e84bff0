#include "transport/progress/usable_cores.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace penstock {
namespace progress {
namespace {

constexpr char kGroupRoot[] = "/sys/fs/cgroup";

int CoresInAffinityMask() {
  cpu_set_t set;
  // Tries another way if this fails, as on machines with more than 1024 cores.
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

// Returns the path of this process's control group below kGroupRoot: "/a/b", or
// "" for the root.
std::string GroupPath() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    absl::string_view path = line;
    if (!absl::ConsumePrefix(&path, "0::")) continue;
    return path == "/" ? "" : std::string(path);
  }
  return "";
}

double QuotaOfGroup(const std::string& path) {
  std::ifstream file(absl::StrCat(kGroupRoot, path, "/cpu.max"));
  std::string line;
  std::getline(file, line);
  return ParseCpuMax(line);
}

}  // namespace

double ParseCpuMax(absl::string_view text) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  int64_t quota = 0;
  int64_t period = 0;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &quota) ||
      !absl::SimpleAtoi(words[1], &period) || quota <= 0 || period <= 0) {
    return 0;
  }
  return static_cast<double>(quota) / static_cast<double>(period);
}

int UsableCores() {
  double cores = CoresInAffinityMask();
  for (std::string path = GroupPath();;) {
    const double quota = QuotaOfGroup(path);
    if (quota > 0) cores = std::min(cores, quota);
    if (path.empty()) break;
    const size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
  }
  return std::max(1, static_cast<int>(cores));
}

}  // namespace progress
}  // namespace penstock
