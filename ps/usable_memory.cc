#include "ps/usable_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "transport/base/bytes_text.h"

namespace penstock::ps {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// Returns the bytes in the line "MemTotal:       24584352 kB" of /proc/meminfo.
uint64_t MachineMemory(const std::string& root) {
  std::ifstream file(absl::StrCat(root, "/proc/meminfo"));
  std::string name;
  uint64_t kilobytes = 0;
  file >> name >> kilobytes;
  return name == "MemTotal:" && kilobytes > 0 ? kilobytes * 1024 : kNoLimit;
}

// Returns the limit in a file, which has "max" or a number of bytes.
uint64_t LimitIn(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  uint64_t limit = 0;
  return absl::SimpleAtoi(line, &limit) ? limit : kNoLimit;
}

// Returns the lowest limit of the group at `path` and of its parent groups.
uint64_t LowestLimit(const std::string& mount, std::string path,
                     const char* file) {
  uint64_t lowest = kNoLimit;
  while (true) {
    lowest = std::min(lowest, LimitIn(absl::StrCat(mount, path, "/", file)));
    const size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return lowest;
    path.resize(slash);
  }
}

// Returns the lowest memory limit of this process's control groups. A line of
// the file is "0::/group" in version 2, and "4:cpu,memory:/group" in version 1.
uint64_t GroupLimit(const std::string& root) {
  std::ifstream file(absl::StrCat(root, "/proc/self/cgroup"));
  uint64_t lowest = kNoLimit;
  std::string line;
  while (std::getline(file, line)) {
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::string& path = fields[2];
    const std::vector<absl::string_view> kinds = absl::StrSplit(fields[1], ',');
    if (fields[0] == "0") {
      lowest =
          std::min(lowest, LowestLimit(absl::StrCat(root, "/sys/fs/cgroup"),
                                       path, "memory.max"));
    } else if (std::count(kinds.begin(), kinds.end(), "memory") > 0) {
      lowest = std::min(
          lowest, LowestLimit(absl::StrCat(root, "/sys/fs/cgroup/memory"), path,
                              "memory.limit_in_bytes"));
    }
  }
  return lowest;
}

}  // namespace

uint64_t UsableMemory(const std::string& root) {
  return std::min(MachineMemory(root), GroupLimit(root));
}

// Divides the usable memory. Assumes that most values of a model are in sparse
// tables. For other models, the user raises the limit of dense values.
MemoryLimits DefaultLimits(uint64_t usable) {
  MemoryLimits limits;
  limits.sparse = usable / 2;
  limits.dense = usable / 4;
  limits.held_gradients = usable / 8;
  limits.held_answers = usable / 8;
  return limits;
}

std::string LimitsText(const MemoryLimits& limits) {
  using base::BytesText;
  return absl::StrCat(
      "limits of memory: --memory=", BytesText(limits.dense),
      ", --sparse-memory=",
      limits.sparse == 0 ? "0 (none)" : BytesText(limits.sparse),
      ", --held-gradients=", BytesText(limits.held_gradients),
      ", --held-answers=", BytesText(limits.held_answers),
      "; by default a quarter, half, an eighth and an eighth of what this "
      "process may use");
}

}  // namespace penstock::ps
