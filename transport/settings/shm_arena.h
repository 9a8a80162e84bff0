// How large the arena of shared memory may get.

#ifndef PENSTOCK_TRANSPORT_SETTINGS_SHM_ARENA_H_
#define PENSTOCK_TRANSPORT_SETTINGS_SHM_ARENA_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace penstock {

// Resolves PENSTOCK_SHM_ARENA_MIB, as bytes; 0: fabric::shm's default. It holds
// for the whole process, as its channels share one arena. INVALID_ARGUMENT: a
// bad value.
absl::StatusOr<uint64_t> ResolveShmArenaBytes();

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SETTINGS_SHM_ARENA_H_
