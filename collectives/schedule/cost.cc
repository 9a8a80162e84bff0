#include "collectives/schedule/cost.h"

#include <algorithm>
#include <map>

#include "collectives/schedule/plan.h"

namespace penstock::collectives {
namespace {

// Returns ceil(log2(ranks)).
int Levels(int ranks) {
  int levels = 0;
  while ((1 << levels) < ranks) ++levels;
  return levels;
}

Cost operator+(const Cost& a, const Cost& b) {
  return {a.steps + b.steps, a.serial + b.serial, a.total + b.total,
          a.reduced + b.reduced};
}

// Returns the cost of a schedule in which each received element is reduced.
Cost Reducing(Cost cost) {
  cost.reduced = cost.serial;
  return cost;
}

// Returns the cost of moving all blocks but one to or from each rank.
Cost AllBlocks(double steps, int ranks, double count) {
  return {steps, count * (ranks - 1) / ranks, count * (ranks - 1)};
}

Cost RecursiveDoublingCost(int ranks, double count) {
  int power = 1;
  while (power * 2 <= ranks) power *= 2;
  const int folded = ranks - power;
  const double steps = Levels(power) + (folded > 0 ? 2 : 0);
  return {steps, steps * count,
          count * (1.0 * power * Levels(power) + 2.0 * folded),
          count * (Levels(power) + (folded > 0 ? 1 : 0))};
}

Cost FlatAllReduceCost(Algorithm algorithm, int ranks, double count) {
  if (algorithm == Algorithm::kRecursiveDoubling) {
    return RecursiveDoublingCost(ranks, count);
  }
  const int steps = algorithm == Algorithm::kRing ? ranks - 1 : Levels(ranks);
  const Cost half = AllBlocks(steps, ranks, count);
  return Reducing(half) + half;
}

Cost TreeCost(int ranks, double count) {
  const double levels = Levels(ranks);
  return {levels, levels * count, count * (ranks - 1)};
}

Cost ScatterCost(int ranks, double count) {
  double blocks = 0;
  for (int place = 1; place < ranks; ++place) {
    blocks += std::min(place & -place, ranks - place);
  }
  return {1.0 * Levels(ranks), count * (ranks - 1) / ranks,
          count * blocks / ranks};
}

Cost ChainCost(const Plan& plan) {
  if (plan.ranks == 1) return {};
  const double count = static_cast<double>(plan.count);
  const double steps = plan.ranks - 2.0 + plan.segments;
  return {steps, steps * count / plan.segments, count * (plan.ranks - 1)};
}

Cost HierarchicalCost(const Plan& plan) {
  std::map<int, int> sizes;  // of hosts
  for (const int host : plan.hosts) ++sizes[host];
  const double count = static_cast<double>(plan.count);
  const int hosts = static_cast<int>(sizes.size());
  int largest = 1;
  for (const auto& [host, size] : sizes) largest = std::max(largest, size);
  const double levels = Levels(largest);
  const Cost inside = {2 * levels, 2 * levels * count,
                       2 * count * (plan.ranks - hosts), levels * count};
  return inside + FlatAllReduceCost(plan.between_hosts, hosts, count);
}

Cost BroadcastCost(const Plan& plan) {
  const double count = static_cast<double>(plan.count);
  if (plan.algorithm == Algorithm::kChain) return ChainCost(plan);
  if (plan.algorithm == Algorithm::kBinomialTree) {
    return TreeCost(plan.ranks, count);
  }
  return ScatterCost(plan.ranks, count) +
         AllBlocks(Levels(plan.ranks), plan.ranks, count);
}

// Returns the cost of a reduce. The gather at its end reduces nothing.
Cost ReduceCost(const Plan& plan) {
  if (plan.algorithm != Algorithm::kScatterAllGather) {
    return Reducing(BroadcastCost(plan));
  }
  const double count = static_cast<double>(plan.count);
  return Reducing(AllBlocks(Levels(plan.ranks), plan.ranks, count)) +
         ScatterCost(plan.ranks, count);
}

double BlockSteps(const Plan& plan) {
  return plan.algorithm == Algorithm::kRing ? plan.ranks - 1
                                            : Levels(plan.ranks);
}

}  // namespace

Cost CostOf(const Plan& plan) {
  const double count = static_cast<double>(plan.count);
  const int ranks = plan.ranks;
  switch (plan.operation) {
    case Operation::kAllReduce:
      return plan.algorithm == Algorithm::kHierarchical
                 ? HierarchicalCost(plan)
                 : FlatAllReduceCost(plan.algorithm, ranks, count);
    case Operation::kReduceScatter:
      return Reducing(AllBlocks(BlockSteps(plan), ranks, count));
    case Operation::kAllGather:
      return AllBlocks(BlockSteps(plan), ranks, count);
    case Operation::kBroadcast:
      return BroadcastCost(plan);
    case Operation::kReduce:
      return ReduceCost(plan);
    case Operation::kGather:
    case Operation::kScatter:
      return ScatterCost(ranks, count);
    case Operation::kAllToAll:
      return AllBlocks(ranks - 1, ranks, count);
    case Operation::kBarrier:
      return {1.0 * Levels(ranks), 0, 0};
  }
  return {};
}

}  // namespace penstock::collectives
