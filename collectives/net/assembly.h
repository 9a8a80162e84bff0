// Exchanges addresses through rank 0, for ranks without a common store.

#ifndef PENSTOCK_COLLECTIVES_NET_ASSEMBLY_H_
#define PENSTOCK_COLLECTIVES_NET_ASSEMBLY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace penstock::collectives {

struct AssemblyOptions {
  // The address of rank 0: a numeric address and a port that is not 0.
  std::string target;
  // A secret of 1 to 64 bytes, equal on all ranks and used for one group.
  std::string token;
  int rank = 0;
  int ranks = 1;
  absl::Duration timeout = absl::Minutes(1);
};

// Returns the addresses of all ranks, in their order. `own` is the
// Listener::address() of this rank. Blocks. The ranks may call in any order,
// even before rank 0. A rank that has died may be restarted. Returns these
// errors:
// - DEADLINE_EXCEEDED, with the missing ranks or the last error, after the
//   timeout. Rank 0's timeout ends the exchange for the ranks that have called;
// - FAILED_PRECONDITION if rank 0 refuses this rank, because rank 0 expects
//   another number of ranks or already knows this rank.
absl::StatusOr<std::vector<std::string>> ExchangeAddresses(
    const AssemblyOptions& options, const std::string& own);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_ASSEMBLY_H_
