#include "tests/transport/fabric/shm/kernel_pages.h"

#include <fcntl.h>
#include <sys/file.h>

#include <fstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// Returns the 7 of "HugePages_Free:       7" and "Rss:    7 kB".
uint64_t NumberIn(const std::string& line) {
  uint64_t number = 0;
  const std::vector<std::string> words =
      absl::StrSplit(line, absl::ByAnyChar(": \t"), absl::SkipEmpty());
  return words.size() > 1 && absl::SimpleAtoi(words[1], &number) ? number : 0;
}

}  // namespace

KernelPagesLock::KernelPagesLock()
    : fd_(open("/sys/kernel/mm", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (fd_.valid()) flock(fd_.get(), LOCK_EX);
}

std::string ChosenOf(const std::string& text) {
  const size_t begin = text.find('[');
  if (begin == std::string::npos) return text;
  return text.substr(begin + 1, text.find(']') - begin - 1);
}

std::string ReadSetting(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return ChosenOf(line);
}

KernelSetting::KernelSetting(const std::string& path, const std::string& value)
    : path_(path), before_(ReadSetting(path)) {
  std::ofstream(path_) << value << std::flush;
  const std::string now = ReadSetting(path_);
  if (now == value) return;
  why_not_ = absl::StrCat(path_, " is \"", now, "\" and cannot be made \"",
                          value, "\" here");
}

KernelSetting::~KernelSetting() {
  std::ofstream(path_) << before_ << std::flush;
}

ReservedPages CountReservedPages() {
  ReservedPages pages;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "HugePages_Free:")) pages.free = NumberIn(line);
    if (absl::StartsWith(line, "HugePages_Total:")) {
      pages.total = NumberIn(line);
    }
  }
  uint64_t more = 0;
  if (absl::SimpleAtoi(ReadSetting("/proc/sys/vm/nr_overcommit_hugepages"),
                       &more)) {
    pages.overcommit = more;
  }
  return pages;
}

HugelyMapped CountHugelyMapped(const void* data) {
  const std::string begin =
      absl::StrCat(absl::Hex(reinterpret_cast<uintptr_t>(data)), "-");
  HugelyMapped mapped;
  std::ifstream file("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, begin)) inside = true;
    if (!inside) continue;
    if (absl::StartsWith(line, "ShmemPmdMapped:")) {
      mapped.transparent += NumberIn(line) * 1024;
    }
    if (absl::StrContains(line, "_Hugetlb:")) {
      mapped.reserved += NumberIn(line) * 1024;
    }
    if (absl::StartsWith(line, "VmFlags:")) break;
  }
  return mapped;
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
