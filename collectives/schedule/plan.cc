#include "collectives/schedule/plan.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock::collectives {
namespace {

using A = Algorithm;

struct Row {
  absl::string_view name;
  std::vector<Algorithm> algorithms;
};

// Returns the names and the algorithms of the operations, in the order of the
// enum.
const std::array<Row, 9>& Rows() {
  static const auto* const rows = new std::array<Row, 9>{{
      {"all_reduce",
       {A::kRecursiveDoubling, A::kHalvingDoubling, A::kRing,
        A::kHierarchical}},
      {"reduce_scatter", {A::kHalvingDoubling, A::kRing}},
      {"all_gather", {A::kBruck, A::kRing}},
      {"broadcast", {A::kBinomialTree, A::kChain, A::kScatterAllGather}},
      {"reduce", {A::kBinomialTree, A::kChain, A::kScatterAllGather}},
      {"gather", {A::kBinomialTree}},
      {"scatter", {A::kBinomialTree}},
      {"all_to_all", {A::kPairwise}},
      {"barrier", {A::kDissemination}},
  }};
  return *rows;
}

bool IsOf(Operation operation, Algorithm algorithm) {
  const std::vector<Algorithm>& all = AlgorithmsOf(operation);
  return std::find(all.begin(), all.end(), algorithm) != all.end();
}

absl::Status Invalid(absl::string_view field, int64_t value,
                     absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", expected ", expected));
}

absl::Status CheckHosts(const Plan& plan) {
  if (plan.hosts.size() != static_cast<size_t>(plan.ranks)) {
    return Invalid("the number of hosts",
                   static_cast<int64_t>(plan.hosts.size()),
                   "one for each rank");
  }
  if (plan.between_hosts == A::kHierarchical ||
      !IsOf(Operation::kAllReduce, plan.between_hosts)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(plan.between_hosts), " cannot run between hosts"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view Name(Operation operation) {
  return Rows()[static_cast<size_t>(operation)].name;
}

absl::string_view Name(Algorithm algorithm) {
  switch (algorithm) {
    case A::kRecursiveDoubling:
      return "recursive doubling";
    case A::kHalvingDoubling:
      return "halving-doubling";
    case A::kRing:
      return "ring";
    case A::kHierarchical:
      return "hierarchical";
    case A::kBinomialTree:
      return "binomial tree";
    case A::kChain:
      return "chain";
    case A::kScatterAllGather:
      return "scatter and all-gather";
    case A::kPairwise:
      return "pairwise";
    case A::kBruck:
      return "bruck";
    case A::kDissemination:
      return "dissemination";
  }
  return "unknown";
}

const std::vector<Algorithm>& AlgorithmsOf(Operation operation) {
  return Rows()[static_cast<size_t>(operation)].algorithms;
}

absl::Status CheckPlan(const Plan& plan) {
  if (plan.ranks < 1 || plan.ranks > kMaxRanks) {
    return Invalid("the number of ranks", plan.ranks,
                   absl::StrCat("1 to ", kMaxRanks));
  }
  if (plan.root < 0 || plan.root >= plan.ranks) {
    return Invalid("root", plan.root, absl::StrCat("0 to ", plan.ranks - 1));
  }
  if (plan.count < 0) return Invalid("count", plan.count, "0 or more");
  if (plan.segments < 1 || plan.segments > kMaxSegments) {
    return Invalid("segments", plan.segments,
                   absl::StrCat("1 to ", kMaxSegments));
  }
  if (!IsOf(plan.operation, plan.algorithm)) {
    return absl::InvalidArgumentError(absl::StrCat(
        Name(plan.operation), " has no algorithm ", Name(plan.algorithm)));
  }
  if (plan.operation == Operation::kAllToAll && plan.count % plan.ranks != 0) {
    return Invalid("count", plan.count,
                   absl::StrCat("a multiple of ", plan.ranks));
  }
  if (plan.algorithm == A::kHierarchical) return CheckHosts(plan);
  return absl::OkStatus();
}

}  // namespace penstock::collectives
