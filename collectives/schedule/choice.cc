#include "collectives/schedule/choice.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "collectives/schedule/cost.h"
#include "collectives/schedule/plan.h"

namespace penstock::collectives {
namespace {

constexpr Operation kOperations[] = {
    Operation::kAllReduce, Operation::kReduceScatter, Operation::kAllGather,
    Operation::kBroadcast, Operation::kReduce,        Operation::kGather,
    Operation::kScatter,   Operation::kAllToAll,      Operation::kBarrier};

// Returns the name of an algorithm in settings.
std::string Key(Algorithm algorithm) {
  return absl::StrReplaceAll(Name(algorithm), {{" ", "-"}});
}

absl::StatusOr<Operation> OperationOf(absl::string_view name) {
  std::vector<absl::string_view> known;
  for (const Operation operation : kOperations) {
    if (Name(operation) == name) return operation;
    known.push_back(Name(operation));
  }
  return absl::InvalidArgumentError(absl::StrCat("no operation \"", name,
                                                 "\", expected one of ",
                                                 absl::StrJoin(known, ", ")));
}

absl::StatusOr<Algorithm> AlgorithmOf(Operation operation,
                                      absl::string_view name) {
  std::vector<std::string> known;
  for (const Algorithm algorithm : AlgorithmsOf(operation)) {
    if (Key(algorithm) == name) return algorithm;
    known.push_back(Key(algorithm));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Name(operation), " has no algorithm \"", name,
                   "\", expected one of ", absl::StrJoin(known, ", ")));
}

int HostsOf(const Question& question) {
  return static_cast<int>(
      std::set<int>(question.hosts.begin(), question.hosts.end()).size());
}

double Time(const Cost& cost, const LinkCosts& link, const Question& question) {
  const auto element_size = static_cast<double>(question.element_size);
  return cost.steps * link.step_us + cost.serial * element_size * link.byte_us +
         cost.reduced * element_size * question.reduce_byte_us;
}

// Returns the number of segments with the shortest estimate of a chain:
// (n - 2 + k) (step + bytes / k) is least at k = sqrt((n - 2) bytes / step).
int SegmentsOf(const Question& question, const LinkCosts& link) {
  const double ranks = static_cast<double>(question.hosts.size());
  const double bytes_us = static_cast<double>(question.count) *
                          static_cast<double>(question.element_size) *
                          link.byte_us;
  const double best = std::sqrt(std::max(0.0, ranks - 2) * bytes_us /
                                std::max(link.step_us, 1e-3));
  const double most =
      std::min<double>(static_cast<double>(question.count), 1 << 16);
  return static_cast<int>(std::max(1.0, std::min(best, most)));
}

Plan PlanOf(const Question& question, Algorithm algorithm) {
  Plan plan;
  plan.operation = question.operation;
  plan.algorithm = algorithm;
  plan.ranks = static_cast<int>(question.hosts.size());
  plan.root = question.root;
  plan.count = question.count;
  plan.hosts = question.hosts;
  return plan;
}

// Estimates the two phases within hosts and the phase between hosts
// separately. Sets the algorithm between hosts.
Estimate EstimateHierarchical(const Question& question, Plan plan) {
  Question between = question;
  between.hosts.resize(HostsOf(question));
  for (size_t i = 0; i < between.hosts.size(); ++i) {
    between.hosts[i] = static_cast<int>(i);
  }
  plan.between_hosts = Algorithm::kRing;
  const Cost all = CostOf(plan);
  const Cost ring = CostOf(PlanOf(between, Algorithm::kRing));
  const Cost inside = {all.steps - ring.steps, all.serial - ring.serial, 0,
                       all.reduced - ring.reduced};
  Estimate best;
  for (const Algorithm algorithm : AlgorithmsOf(Operation::kAllReduce)) {
    if (algorithm == Algorithm::kHierarchical) continue;
    const double time = Time(inside, question.inside_host, question) +
                        Time(CostOf(PlanOf(between, algorithm)),
                             question.between_hosts, question);
    plan.between_hosts = algorithm;
    if (best.plan.hosts.empty() || time < best.microseconds) {
      best = {plan, time};
    }
  }
  return best;
}

Estimate EstimateOf(const Question& question, Algorithm algorithm) {
  Plan plan = PlanOf(question, algorithm);
  if (algorithm == Algorithm::kHierarchical) {
    return EstimateHierarchical(question, std::move(plan));
  }
  // The slowest link determines the duration of each step.
  const LinkCosts& link =
      HostsOf(question) > 1 ? question.between_hosts : question.inside_host;
  if (algorithm == Algorithm::kChain) {
    plan.segments = SegmentsOf(question, link);
  }
  return {plan, Time(CostOf(plan), link, question)};
}

std::string Text(const Estimate& estimate) {
  std::string name(Name(estimate.plan.algorithm));
  if (estimate.plan.algorithm == Algorithm::kChain) {
    absl::StrAppend(&name, " of ", estimate.plan.segments, " segments");
  }
  if (estimate.plan.algorithm == Algorithm::kHierarchical) {
    absl::StrAppend(&name, " with ", Name(estimate.plan.between_hosts),
                    " between hosts");
  }
  return name;
}

std::string Micros(const Estimate& estimate) {
  return absl::StrCat(std::llround(estimate.microseconds), " us");
}

}  // namespace

absl::StatusOr<Overrides> ParseOverrides(absl::string_view text) {
  Overrides overrides;
  for (const absl::string_view part :
       absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const auto operation = OperationOf(sides.first);
    if (!operation.ok()) return operation.status();
    const auto algorithm = AlgorithmOf(*operation, sides.second);
    if (!algorithm.ok()) return algorithm.status();
    if (!overrides.emplace(*operation, *algorithm).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(sides.first, " is named twice"));
    }
  }
  return overrides;
}

absl::StatusOr<Choice> Choose(const Question& question,
                              const Overrides& overrides) {
  if (question.hosts.empty()) {
    return absl::InvalidArgumentError("a group has no ranks");
  }
  if (question.element_size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("an element has ", question.element_size, " bytes"));
  }
  Choice choice;
  for (const Algorithm algorithm : AlgorithmsOf(question.operation)) {
    const absl::Status checked = CheckPlan(PlanOf(question, algorithm));
    if (!checked.ok()) return checked;
    choice.others.push_back(EstimateOf(question, algorithm));
  }
  std::stable_sort(choice.others.begin(), choice.others.end(),
                   [](const Estimate& a, const Estimate& b) {
                     return a.microseconds < b.microseconds;
                   });
  auto chosen = choice.others.begin();
  const auto forced = overrides.find(question.operation);
  choice.forced = forced != overrides.end();
  while (choice.forced && chosen->plan.algorithm != forced->second) ++chosen;
  choice.chosen = *chosen;
  choice.others.erase(chosen);
  return choice;
}

std::string Describe(const Choice& choice) {
  const Plan& plan = choice.chosen.plan;
  std::vector<std::string> others;
  for (const Estimate& estimate : choice.others) {
    others.push_back(absl::StrCat(Text(estimate), " ", Micros(estimate)));
  }
  return absl::StrCat(
      Name(plan.operation), " of ", plan.count, " elements on ", plan.ranks,
      " ranks: ", Text(choice.chosen), choice.forced ? ", forced" : "",
      ", about ", Micros(choice.chosen),
      others.empty() ? ""
                     : absl::StrCat(" (", absl::StrJoin(others, ", "), ")"));
}

}  // namespace penstock::collectives
