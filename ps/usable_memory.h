// How much memory the process may use.

#ifndef PENSTOCK_PS_USABLE_MEMORY_H_
#define PENSTOCK_PS_USABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace penstock::ps {

// Returns the machine's memory, or the lowest limit of the process's control
// group and those above it, if that is less, in bytes. `root` is "", or where a
// test has its /proc and /sys.
uint64_t UsableMemory(const std::string& root = "");

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_USABLE_MEMORY_H_
