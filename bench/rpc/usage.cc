#include "bench/rpc/usage.h"

#include <time.h>

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace bench {
namespace {

// A line of the process's smaps_rollup.
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

}  // namespace

absl::StatusOr<Usage> UsageOf(pid_t pid) {
  Usage usage;
  clockid_t clock;
  timespec time;
  if (clock_getcpuclockid(pid, &clock) != 0 ||
      clock_gettime(clock, &time) != 0) {
    return absl::InternalError(absl::StrCat("no CPU clock of process ", pid));
  }
  usage.cpu_s = time.tv_sec + time.tv_nsec * 1e-9;
  // Not of files: what a process's share in a library is depends on who else
  // has loaded it.
  for (const char* kind : {"Pss_Anon:", "Pss_Shmem:"}) {
    const absl::StatusOr<double> kib = MemoryKib(pid, kind);
    if (!kib.ok()) return kib.status();
    usage.memory_kib += *kib;
  }
  return usage;
}

}  // namespace bench
}  // namespace penstock
