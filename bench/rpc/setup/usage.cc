#include "bench/rpc/setup/usage.h"

#include <time.h>

#include <fstream>
#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace bench {
namespace {

// Returns a process's memory in KiB from one line of its smaps_rollup.
absl::StatusOr<double> MemoryKib(pid_t pid, const std::string& line) {
  const std::string path = absl::StrCat("/proc/", pid, "/smaps_rollup");
  std::ifstream in(path);
  std::string word;
  while (in >> word && word != line) {
  }
  double kib;
  if (in >> kib) return kib;
  return absl::InternalError(absl::StrCat("no ", line, " in ", path));
}

// Returns a process's page faults: the tenth field of its stat, see proc(5).
// The second field, the name, is in parentheses and may contain parentheses.
absl::StatusOr<double> PageFaults(pid_t pid) {
  constexpr int kFieldsBetween = 7;
  const std::string path = absl::StrCat("/proc/", pid, "/stat");
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  std::istringstream rest(line.substr(line.rfind(')') + 1));
  std::string word;
  for (int i = 0; i < kFieldsBetween; ++i) rest >> word;
  double faults;
  if (rest >> faults) return faults;
  return absl::InternalError(absl::StrCat("no page faults in ", path));
}

}  // namespace

absl::StatusOr<double> CpuSecondsOf(pid_t pid) {
  clockid_t clock;
  timespec time;
  if (clock_getcpuclockid(pid, &clock) != 0 ||
      clock_gettime(clock, &time) != 0) {
    return absl::InternalError(absl::StrCat("no CPU clock of process ", pid));
  }
  return time.tv_sec + time.tv_nsec * 1e-9;
}

absl::StatusOr<Usage> UsageOf(pid_t pid) {
  Usage usage;
  const absl::StatusOr<double> cpu = CpuSecondsOf(pid);
  if (!cpu.ok()) return cpu.status();
  usage.cpu_s = *cpu;
  // Count no files: a process's share of a library depends on other users of
  // the library.
  for (const char* kind : {"Pss_Anon:", "Pss_Shmem:"}) {
    const absl::StatusOr<double> kib = MemoryKib(pid, kind);
    if (!kib.ok()) return kib.status();
    usage.memory_kib += *kib;
  }
  const absl::StatusOr<double> faults = PageFaults(pid);
  if (!faults.ok()) return faults.status();
  usage.page_faults = *faults;
  return usage;
}

}  // namespace bench
}  // namespace penstock
