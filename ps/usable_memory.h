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

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_USABLE_MEMORY_H_
