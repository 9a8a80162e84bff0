#include "bench/rpc/usage.h"

#include <time.h>

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace bench {

absl::StatusOr<Usage> UsageOf(pid_t pid) {
  Usage usage;
  clockid_t clock;
  timespec time;
  if (clock_getcpuclockid(pid, &clock) != 0 ||
      clock_gettime(clock, &time) != 0) {
    return absl::InternalError(absl::StrCat("no CPU clock of process ", pid));
  }
  usage.cpu_s = time.tv_sec + time.tv_nsec * 1e-9;
  const std::string path = absl::StrCat("/proc/", pid, "/smaps_rollup");
  std::ifstream in(path);
  std::string word;
  while (in >> word && word != "Pss:") {
  }
  if (!(in >> usage.memory_kib)) {
    return absl::InternalError(absl::StrCat("no Pss in ", path));
  }
  return usage;
}

}  // namespace bench
}  // namespace penstock
