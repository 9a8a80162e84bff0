#include "tests/soak/holdings.h"

#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace penstock::soak {
namespace {

// The tolerated growth in threads. gRPC's pools grow at random, by one to three
// threads in a hundred thousand calls, up to a limit. A leak would not stop
// growing.
constexpr uint64_t kThreadSlack = 8;
// The tolerated growth of memory that the allocator cannot return because of
// neighbouring allocations. 17 bytes for each of a million calls, or four of
// the largest messages.
constexpr uint64_t kMemorySlackKib = 16 * 1024;
// The initial threshold of malloc, which grows with freed blocks.
constexpr int kLargeBytes = 128 * 1024;

// Returns the number of entries, without "." and "..".
uint64_t CountEntries(const char* folder) {
  uint64_t count = 0;
  DIR* entries = opendir(folder);
  if (entries == nullptr) return 0;
  while (readdir(entries) != nullptr) ++count;
  closedir(entries);
  return count - 2;
}

}  // namespace

void KeepNoFreeMemory() {
  mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  mallopt(M_TRIM_THRESHOLD, kLargeBytes);
}

Holdings MeasureSelf() {
  malloc_trim(0);
  Holdings result;
  result.set_descriptors(CountEntries("/proc/self/fd"));
  result.set_threads(CountEntries("/proc/self/task"));
  std::ifstream maps("/proc/self/maps");
  uint64_t memory_files = 0;
  for (std::string line; std::getline(maps, line);) {
    memory_files += absl::StrContains(line, "memfd:");
  }
  result.set_memory_files(memory_files);
  uint64_t mapped = 0, resident = 0, shared = 0;  // pages
  std::ifstream("/proc/self/statm") >> mapped >> resident >> shared;
  result.set_private_kib((resident - shared) * (sysconf(_SC_PAGESIZE) / 1024));
  return result;
}

bool IsFlat(const Holdings& before, const Holdings& now) {
  return now.descriptors() <= before.descriptors() &&
         now.threads() <= before.threads() + kThreadSlack &&
         now.memory_files() <= before.memory_files() &&
         now.private_kib() <= before.private_kib() + kMemorySlackKib;
}

std::string ToText(const Holdings& holdings) {
  return absl::StrCat(holdings.descriptors(), " descriptors, ",
                      holdings.threads(), " threads, ", holdings.memory_files(),
                      " memory files, ", holdings.private_kib(),
                      " private KiB");
}

}  // namespace penstock::soak
