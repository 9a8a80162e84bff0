// Measures the resources of this process, and detects growth.

#ifndef PENSTOCK_TESTS_SOAK_HOLDINGS_H_
#define PENSTOCK_TESTS_SOAK_HOLDINGS_H_

#include <string>

#include "tests/soak/soak.pb.h"

namespace penstock::soak {

// Makes malloc return free memory to the system, except for small blocks.
// Otherwise malloc may keep the memory of a few large messages.
void KeepNoFreeMemory();

// Measures the resources, from /proc/self.
Holdings MeasureSelf();

// Returns true if `now` holds no more than `before`. Ignores threads of gRPC's
// pools and memory that the allocator keeps.
bool IsFlat(const Holdings& before, const Holdings& now);

// Returns "31 descriptors, 14 threads, 6 memory files, 25600 private KiB".
std::string ToText(const Holdings& holdings);

}  // namespace penstock::soak

#endif  // PENSTOCK_TESTS_SOAK_HOLDINGS_H_
