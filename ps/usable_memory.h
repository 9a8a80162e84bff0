// Finds the memory that the process may use.

#ifndef PENSTOCK_PS_USABLE_MEMORY_H_
#define PENSTOCK_PS_USABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace penstock::ps {

// Returns the smaller of the machine's memory and the lowest limit of the
// process's control groups, including all parent groups, in bytes. `root` is
// "", or a test's folder with /proc and /sys.
uint64_t UsableMemory(const std::string& root = "");

// The default limits of a server, in bytes. Together they are all memory that
// the server may use.
struct MemoryLimits {
  uint64_t dense = 0;
  uint64_t sparse = 0;  // of tables without a budget_bytes; 0: no limit
  uint64_t held_gradients = 0;
  uint64_t held_answers = 0;
};

// Divides `usable` bytes among the limits.
MemoryLimits DefaultLimits(uint64_t usable);

// Returns a text with the limits, by the names of their flags.
std::string LimitsText(const MemoryLimits& limits);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_USABLE_MEMORY_H_
