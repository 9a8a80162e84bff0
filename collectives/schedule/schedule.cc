#include "collectives/schedule/schedule.h"

#include <algorithm>
#include <cstdint>

#include "collectives/schedule/algorithms.h"
#include "collectives/schedule/builder.h"
#include "collectives/schedule/plan.h"

namespace penstock::collectives {
namespace {

// Returns the actions with their steps in reverse order. Within a step, the
// order stays the same on both sides of each message.
Schedule Reversed(const Schedule& schedule, Action::Kind received) {
  Schedule reversed(schedule.rbegin(), schedule.rend());
  const int last = schedule.empty() ? 0 : schedule.back().step;
  for (Action& action : reversed) {
    action.step = last - action.step;
    action.kind =
        action.kind == Action::Kind::kSend ? received : Action::Kind::kSend;
  }
  return reversed;
}

Schedule AllGather(const Plan& plan, const Seat& seat) {
  return plan.algorithm == Algorithm::kRing ? RingAllGather(seat, plan.count)
                                            : BruckAllGather(seat, plan.count);
}

Schedule AllReduce(const Plan& plan, const Seat& seat) {
  switch (plan.algorithm) {
    case Algorithm::kRecursiveDoubling:
      return RecursiveDoubling(seat, plan.count);
    case Algorithm::kRing:
      return RingAllReduce(seat, plan.count);
    case Algorithm::kHierarchical:
      return Hierarchical(seat, plan.count, plan.hosts, plan.between_hosts);
    default:
      return HalvingDoubling(seat, plan.count);
  }
}

Schedule Broadcast(const Plan& plan, const Seat& seat) {
  switch (plan.algorithm) {
    case Algorithm::kChain:
      return ChainBroadcast(seat, plan.root, plan.count, plan.segments);
    case Algorithm::kScatterAllGather:
      return ScatterAllGather(seat, plan.root, plan.count);
    default:
      return BinomialBroadcast(seat, plan.root, plan.count);
  }
}

Schedule Reduce(const Plan& plan, const Seat& seat) {
  if (plan.algorithm != Algorithm::kScatterAllGather) {
    return ReversedToReduce(seat, Broadcast(plan, seat));
  }
  // Gathers the sums. In a rank inside the tree, the blocks of other ranks
  // still contain the rank's own addends, which the gathered sums overwrite.
  Schedule schedule = ReversedToReduce(seat, BruckAllGather(seat, plan.count));
  Append(&schedule,
         ReversedToReceive(BinomialScatter(seat, plan.root, plan.count)));
  return schedule;
}

}  // namespace

Schedule ReversedToReduce(const Seat& seat, const Schedule& schedule) {
  Schedule reversed = Reversed(schedule, Action::Kind::kReduceRight);
  for (Action& action : reversed) {
    if (action.kind == Action::Kind::kReduceRight && action.peer < seat.rank) {
      action.kind = Action::Kind::kReduceLeft;
    }
  }
  return reversed;
}

Schedule ReversedToReceive(const Schedule& schedule) {
  return Reversed(schedule, Action::Kind::kReceive);
}

Schedule MakeSchedule(const Plan& plan, int rank) {
  const Seat seat = {rank, plan.ranks};
  switch (plan.operation) {
    case Operation::kAllReduce:
      return AllReduce(plan, seat);
    case Operation::kReduceScatter:
      return ReversedToReduce(seat, AllGather(plan, seat));
    case Operation::kAllGather:
      return AllGather(plan, seat);
    case Operation::kBroadcast:
      return Broadcast(plan, seat);
    case Operation::kReduce:
      return Reduce(plan, seat);
    case Operation::kGather:
      return ReversedToReceive(BinomialScatter(seat, plan.root, plan.count));
    case Operation::kScatter:
      return BinomialScatter(seat, plan.root, plan.count);
    case Operation::kAllToAll:
      return PairwiseAllToAll(seat, plan.count);
    case Operation::kBarrier:
      return DisseminationBarrier(seat);
  }
  return {};
}

int64_t ExtentOf(const Schedule& schedule) {
  int64_t extent = 0;
  for (const Action& action : schedule) {
    if (action.buffer != Action::Buffer::kData) continue;
    extent = std::max(extent, action.range.begin + action.range.count);
  }
  return extent;
}

}  // namespace penstock::collectives
