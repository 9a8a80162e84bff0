#include <algorithm>
#include <cstdint>
#include <vector>

#include "collectives/schedule/algorithms.h"
#include "collectives/schedule/blocks.h"
#include "collectives/schedule/builder.h"
#include "collectives/schedule/schedule.h"

namespace penstock::collectives {
namespace {

// Builds recursive doubling for the largest power of two of ranks. Each of the
// `folded` other ranks first gives its buffer to the next rank.
class Doubling {
 public:
  Doubling(const Seat& seat, int64_t count)
      : seat_(seat), all_{0, count}, builder_(seat, count) {
    while (power_ * 2 <= seat.ranks) power_ *= 2;
    folded_ = seat.ranks - power_;
  }

  Schedule Make() {
    const bool in_pair = seat_.rank < 2 * folded_;
    const bool gives = in_pair && seat_.rank % 2 == 0;
    if (gives) {
      builder_.Send(seat_.rank + 1, all_);
      builder_.NextStep();
      builder_.Receive(seat_.rank + 1, all_);
      return builder_.Take();
    }
    if (in_pair) {
      builder_.Reduce(seat_.rank - 1, all_);
      builder_.NextStep();
    }
    Exchange();
    if (in_pair) builder_.Send(seat_.rank - 1, all_);
    return builder_.Take();
  }

 private:
  void Exchange() {
    const int place =
        seat_.rank < 2 * folded_ ? seat_.rank / 2 : seat_.rank - folded_;
    for (int distance = 1; distance < power_; distance *= 2) {
      const int other = place ^ distance;
      const int peer = other < folded_ ? other * 2 + 1 : other + folded_;
      builder_.Send(peer, all_);
      builder_.Reduce(peer, all_);
      builder_.NextStep();
    }
  }

  const Seat seat_;
  const Range all_;
  Builder builder_;
  int power_ = 1;
  int folded_ = 0;
};

Schedule ReduceScatterThenAllGather(const Seat& seat,
                                    const Schedule& all_gather) {
  Schedule schedule = ReversedToReduce(seat, all_gather);
  Append(&schedule, all_gather);
  return schedule;
}

// Returns the index of `rank` in `members`, which is sorted.
int PlaceOf(int rank, const std::vector<int>& members) {
  return static_cast<int>(
      std::lower_bound(members.begin(), members.end(), rank) - members.begin());
}

struct Topology {
  std::vector<int> neighbours;  // the ranks of this rank's host
  std::vector<int> leaders;     // the first rank of each host
};

Topology TopologyOf(int rank, const std::vector<int>& hosts) {
  Topology topology;
  std::vector<int> seen;
  for (int each = 0; each < static_cast<int>(hosts.size()); ++each) {
    if (hosts[each] == hosts[rank]) topology.neighbours.push_back(each);
    const auto place = std::lower_bound(seen.begin(), seen.end(), hosts[each]);
    if (place != seen.end() && *place == hosts[each]) continue;
    seen.insert(place, hosts[each]);
    topology.leaders.push_back(each);
  }
  return topology;
}

Schedule FlatAllReduce(Algorithm algorithm, const Seat& seat, int64_t count) {
  if (algorithm == Algorithm::kRecursiveDoubling) {
    return RecursiveDoubling(seat, count);
  }
  if (algorithm == Algorithm::kRing) return RingAllReduce(seat, count);
  return HalvingDoubling(seat, count);
}

}  // namespace

Schedule RecursiveDoubling(const Seat& seat, int64_t count) {
  return Doubling(seat, count).Make();
}

Schedule BruckAllGather(const Seat& seat, int64_t count) {
  Builder builder(seat, count);
  for (int distance = 1; distance < seat.ranks; distance *= 2) {
    const int number = std::min(distance, seat.ranks - distance);
    const int to = Wrap(seat.rank - distance, seat.ranks);
    const int from = Wrap(seat.rank + distance, seat.ranks);
    builder.SendBlocks(to, seat.rank, number);
    builder.ReceiveBlocks(from, from, number);
    builder.NextStep();
  }
  return builder.Take();
}

Schedule RingAllGather(const Seat& seat, int64_t count) {
  Builder builder(seat, count);
  const int next = Wrap(seat.rank + 1, seat.ranks);
  const int previous = Wrap(seat.rank - 1, seat.ranks);
  for (int step = 0; step + 1 < seat.ranks; ++step) {
    builder.SendBlocks(next, seat.rank - step, 1);
    builder.ReceiveBlocks(previous, previous - step, 1);
    builder.NextStep();
  }
  return builder.Take();
}

Schedule HalvingDoubling(const Seat& seat, int64_t count) {
  return ReduceScatterThenAllGather(seat, BruckAllGather(seat, count));
}

Schedule RingAllReduce(const Seat& seat, int64_t count) {
  return ReduceScatterThenAllGather(seat, RingAllGather(seat, count));
}

Schedule Hierarchical(const Seat& seat, int64_t count,
                      const std::vector<int>& hosts, Algorithm between_hosts) {
  const Topology topology = TopologyOf(seat.rank, hosts);
  const std::vector<int>& neighbours = topology.neighbours;
  const Seat inside = {PlaceOf(seat.rank, neighbours),
                       static_cast<int>(neighbours.size())};
  const Schedule broadcast = BinomialBroadcast(inside, 0, count);
  Schedule schedule;
  Append(&schedule, ReversedToReduce(inside, broadcast), neighbours);
  if (inside.rank == 0) {
    const Seat leader = {PlaceOf(seat.rank, topology.leaders),
                         static_cast<int>(topology.leaders.size())};
    Append(&schedule, FlatAllReduce(between_hosts, leader, count),
           topology.leaders);
  }
  Append(&schedule, broadcast, neighbours);
  return schedule;
}

}  // namespace penstock::collectives
