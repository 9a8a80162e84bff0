// How much memory a process may lock, which registering it does.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_LOCKED_MEMORY_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_LOCKED_MEMORY_H_

#include <cstdint>

#include "absl/status/status.h"

namespace penstock {
namespace fabric {
namespace verbs {

constexpr uint64_t kUnlimited = ~uint64_t{0};

// What users can do about too little of it.
constexpr char kLockedMemoryRemedy[] =
    "raise the limit of locked memory (ulimit -l, or LimitMEMLOCK= of a "
    "systemd service)";

// Of this process, as of now: RLIMIT_MEMLOCK, or kUnlimited, for whom it does
// not bind (CAP_IPC_LOCK) too. In a user namespace the capability may be worth
// nothing; registering says so.
uint64_t LockedMemoryLimit();

// RESOURCE_EXHAUSTED, with the remedy, if no connection could be made.
absl::Status CheckLockedMemory(uint64_t limit);

// Of the `wanted` bytes of registrations that may be kept, what leaves enough
// of the limit to connections.
uint64_t CacheBudget(uint64_t wanted, uint64_t limit);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_LOCKED_MEMORY_H_
