// Resolves the limit of the arena of shared memory.

#ifndef PENSTOCK_TRANSPORT_SETTINGS_SHM_ARENA_H_
#define PENSTOCK_TRANSPORT_SETTINGS_SHM_ARENA_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace penstock {

// Resolves PENSTOCK_SHM_ARENA_MIB, in bytes. 0 means the default of
// fabric::shm. The value applies to the whole process, because all channels
// share one arena. Returns INVALID_ARGUMENT for a bad value.
absl::StatusOr<uint64_t> ResolveShmArenaBytes();

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SETTINGS_SHM_ARENA_H_
