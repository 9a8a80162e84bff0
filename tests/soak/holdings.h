// Tells what this process holds, and whether that grows.

#ifndef PENSTOCK_TESTS_SOAK_HOLDINGS_H_
#define PENSTOCK_TESTS_SOAK_HOLDINGS_H_

#include <string>

#include "tests/soak/soak.pb.h"

namespace penstock::soak {

// From now on malloc returns free memory to the system, except for small
// pieces. Otherwise it keeps, by chance, as much as a few of the largest
// messages.
void KeepNoFreeMemory();

// Measures by /proc/self.
Holdings MeasureSelf();

// Returns whether `now` holds no more than `before`, apart from threads that
// gRPC's pools keep and memory that the allocator keeps.
bool IsFlat(const Holdings& before, const Holdings& now);

// Returns "31 descriptors, 14 threads, 6 memory files, 25600 private KiB".
std::string ToText(const Holdings& holdings);

}  // namespace penstock::soak

#endif  // PENSTOCK_TESTS_SOAK_HOLDINGS_H_
