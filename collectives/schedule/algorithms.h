// The algorithms, each as the schedule of one rank.
//
// Sources:
//   [Thakur]  R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective
//             Communication Operations in MPICH", IJHPCA 19(1), 2005.
//   [Bruck]   J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby,
//             "Efficient Algorithms for All-to-All Communications in Multiport
//             Message-Passing Systems", IEEE TPDS 8(11), 1997.
//   [Traff]   J. L. Traff, "Optimal, Non-pipelined Reduce-scatter and Allreduce
//             Algorithms", arXiv:2410.14234, 2024.
//   [Patarasuk] P. Patarasuk, X. Yuan, "Bandwidth Optimal All-reduce Algorithms
//             for Clusters of Workstations", JPDC 69(2), 2009.
//   [Barnett] M. Barnett, L. Shuler, S. Gupta, D. Payne, R. van de Geijn,
//             J. Watts, "Building a High-Performance Collective Communication
//             Library", SC 1994.
//   [Hensgen] D. Hensgen, R. Finkel, U. Manber, "Two Algorithms for Barrier
//             Synchronization", IJPP 17(1), 1988.
//
// n is the number of ranks, S the size of the buffer. "Sends" is the total over
// all ranks.

#ifndef PENSTOCK_COLLECTIVES_SCHEDULE_ALGORITHMS_H_
#define PENSTOCK_COLLECTIVES_SCHEDULE_ALGORITHMS_H_

#include <cstdint>
#include <vector>

#include "collectives/schedule/schedule.h"

namespace penstock::collectives {

struct Seat {
  int rank;
  int ranks;
};

// Returns an all-reduce by recursive doubling [Thakur, 4.5]: pairs exchange and
// reduce the whole buffer, at distances 1, 2, 4 and so on. If n is not a power
// of two, p is the next lower power, and n - p ranks first fold their buffer
// into a neighbour, from which they receive the result. Takes log2(p) steps, or
// 2 more. Sends (p log2(p) + 2 (n - p)) S.
Schedule RecursiveDoubling(const Seat& seat, int64_t count);

// Returns an all-gather in which a rank receives from ranks at distances 1, 2,
// 4 and so on [Bruck]. Blocks are sent from their final places, so that no
// rotation is needed. Takes ceil(log2(n)) steps. Sends (n - 1) S.
Schedule BruckAllGather(const Seat& seat, int64_t count);

// Returns an all-gather around a ring [Thakur, 4.1]. Takes n - 1 steps. Sends
// (n - 1) S.
Schedule RingAllGather(const Seat& seat, int64_t count);

// Returns an all-reduce that consists of a reduce-scatter and an all-gather.
// For powers of two, steps and bytes are those of Rabenseifner's algorithm
// [Thakur, 4.5]. For other n, the reversed Bruck algorithm needs no folding
// [Traff]. Takes 2 ceil(log2(n)) steps. Sends 2 (n - 1) S.
Schedule HalvingDoubling(const Seat& seat, int64_t count);

// Returns an all-reduce that consists of a reduce-scatter and an all-gather
// around a ring [Patarasuk]. Takes 2 (n - 1) steps. Sends 2 (n - 1) S.
Schedule RingAllReduce(const Seat& seat, int64_t count);

// Returns an all-reduce in three phases: a binomial reduce to the first rank of
// each host, an all-reduce `between_hosts` among these ranks, a binomial
// broadcast within each host.
Schedule Hierarchical(const Seat& seat, int64_t count,
                      const std::vector<int>& hosts, Algorithm between_hosts);

// Returns a broadcast by a binomial tree [Thakur, 4.2]. Takes ceil(log2(n))
// steps. Sends (n - 1) S.
Schedule BinomialBroadcast(const Seat& seat, int root, int64_t count);

// Returns a broadcast along a chain that begins at the root, in `segments`
// pieces [Barnett]. Takes n - 2 + segments steps. Sends (n - 1) S.
Schedule ChainBroadcast(const Seat& seat, int root, int64_t count,
                        int segments);

// Returns a scatter by a binomial tree [Thakur, 4.2]. Ranks inside the tree use
// their buffer for the blocks of others. Takes ceil(log2(n)) steps. Sends
// (log2(n) / 2) S if n is a power of two.
Schedule BinomialScatter(const Seat& seat, int root, int64_t count);

// Returns a broadcast that consists of a binomial scatter and Bruck's
// all-gather ([Barnett], [Thakur, 4.2]; both use a recursive-doubling
// all-gather, which requires a power of two).
Schedule ScatterAllGather(const Seat& seat, int root, int64_t count);

// Returns an all-to-all in n - 1 steps [Thakur, 4.3]. In step i, each rank r
// sends to rank r + i, modulo n. Sends (n - 1) S. Copies a rank's own block by
// a message to itself.
Schedule PairwiseAllToAll(const Seat& seat, int64_t count);

// Returns a barrier of ceil(log2(n)) steps [Hensgen]. Sends only empty
// messages.
Schedule DisseminationBarrier(const Seat& seat);

// Return the schedule that runs in reverse: each send becomes a receive, and
// each receive a send. A broadcast becomes a reduce, an all-gather a
// reduce-scatter, and a scatter a gather.
Schedule ReversedToReduce(const Seat& seat, const Schedule& schedule);
Schedule ReversedToReceive(const Schedule& schedule);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_SCHEDULE_ALGORITHMS_H_
