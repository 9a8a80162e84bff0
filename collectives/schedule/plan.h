// A collective operation, and the algorithm that runs it.

#ifndef PENSTOCK_COLLECTIVES_SCHEDULE_PLAN_H_
#define PENSTOCK_COLLECTIVES_SCHEDULE_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock::collectives {

enum class Operation {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
  kBarrier,
};

// The algorithms. algorithms.h describes each, and names its source.
enum class Algorithm {
  kRecursiveDoubling,
  kHalvingDoubling,
  kRing,
  kHierarchical,
  kBinomialTree,
  kChain,
  kScatterAllGather,
  kPairwise,
  kBruck,
  kDissemination,
};

// Limits the ranks of a group, because a peer may send any rank count.
inline constexpr int kMaxRanks = 1 << 16;
// Limits the segments of a chain.
inline constexpr int kMaxSegments = 1 << 16;

struct Plan {
  Operation operation = Operation::kAllReduce;
  Algorithm algorithm = Algorithm::kRing;
  int ranks = 1;
  // The rank at which a broadcast or scatter begins, or a reduce or gather
  // ends. Other operations have no root.
  int root = 0;
  // The number of elements of a rank's whole buffer. Gather, scatter,
  // all_gather and reduce_scatter divide the buffer into one block for each
  // rank; see blocks.h. All_to_all requires a multiple of `ranks`.
  int64_t count = 0;
  // For kChain: the number of pieces that are sent one after another.
  int segments = 1;
  // For kHierarchical: the host of each rank, by any numbering, and the
  // algorithm among the first ranks of all hosts.
  std::vector<int> hosts;
  Algorithm between_hosts = Algorithm::kHalvingDoubling;
};

// Returns "all_reduce", "recursive doubling" and so on.
absl::string_view Name(Operation operation);
absl::string_view Name(Algorithm algorithm);

// Returns the algorithms of an operation.
const std::vector<Algorithm>& AlgorithmsOf(Operation operation);

// Returns an error that names the first field that is out of range.
absl::Status CheckPlan(const Plan& plan);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_SCHEDULE_PLAN_H_
