// What this process holds, and whether that grows.

#ifndef PENSTOCK_TESTS_SOAK_HOLDINGS_H_
#define PENSTOCK_TESTS_SOAK_HOLDINGS_H_

#include <string>

#include "tests/soak/soak.pb.h"

namespace penstock::soak {

// From now on malloc returns to the system what is free, but for small pieces:
// else it keeps as much as a few of the largest messages, or not, by chance.
void KeepNoFreeMemory();

// From /proc/self.
Holdings MeasureSelf();

// `now` holds no more than `before`, but for threads that gRPC's pools keep and
// memory that the allocator does.
bool IsFlat(const Holdings& before, const Holdings& now);

// "31 descriptors, 14 threads, 6 memory files, 25600 private KiB".
std::string ToText(const Holdings& holdings);

}  // namespace penstock::soak

#endif  // PENSTOCK_TESTS_SOAK_HOLDINGS_H_
