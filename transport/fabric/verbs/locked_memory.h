// The limit of locked memory. Registrations count against this limit.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_LOCKED_MEMORY_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_LOCKED_MEMORY_H_

#include <cstdint>

#include "absl/status/status.h"

namespace penstock {
namespace fabric {
namespace verbs {

constexpr uint64_t kUnlimited = ~uint64_t{0};

// The remedy for a limit that is too low.
constexpr char kLockedMemoryRemedy[] =
    "raise the limit of locked memory (ulimit -l, or LimitMEMLOCK= of a "
    "systemd service)";

// Returns this process's present limit (RLIMIT_MEMLOCK), or kUnlimited. Also
// returns kUnlimited with CAP_IPC_LOCK, which lifts the limit. In a user
// namespace the capability may have no effect; registering memory then fails.
uint64_t LockedMemoryLimit();

// Returns RESOURCE_EXHAUSTED, with the remedy, if `limit` is too low for a
// connection.
absl::Status CheckLockedMemory(uint64_t limit);

// Returns how many of the `wanted` bytes registrations may keep, so that
// `limit` leaves enough locked memory for connections.
uint64_t CacheBudget(uint64_t wanted, uint64_t limit);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_LOCKED_MEMORY_H_
