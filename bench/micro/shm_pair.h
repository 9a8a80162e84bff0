// Two endpoints of a connection over shared memory, in one process.

#ifndef PENSTOCK_BENCH_MICRO_SHM_PAIR_H_
#define PENSTOCK_BENCH_MICRO_SHM_PAIR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "transport/fabric/fabric.h"

namespace penstock {
namespace bench {

struct ShmPair {
  std::unique_ptr<fabric::Endpoint> listening;
  std::unique_ptr<fabric::Endpoint> connecting;
};

// Connects two endpoints, and blocks until they are connected. Does not start
// them. Returns an error, with the reason, if this machine has no shared
// memory.
absl::StatusOr<ShmPair> ConnectShm();

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_MICRO_SHM_PAIR_H_
