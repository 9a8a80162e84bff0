// Runs the schedules of all operations and algorithms in a simulator: for each
// number of ranks up to 64, and for random numbers up to 1,024.

#include "collectives/schedule/schedule.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/schedule/blocks.h"
#include "collectives/schedule/cost.h"
#include "collectives/schedule/plan.h"
#include "gtest/gtest.h"
#include "ps/random/mix.h"
#include "tests/collectives/schedule/simulator.h"

namespace penstock::collectives {
namespace {

using Buffers = std::vector<std::vector<Element>>;

std::string Text(const Plan& plan) {
  return absl::StrCat(Name(plan.operation), " by ", Name(plan.algorithm),
                      " of ", plan.count, " elements, ", plan.ranks,
                      " ranks, root ", plan.root, ", ", plan.segments,
                      " segments, ", Name(plan.between_hosts), " between ",
                      plan.hosts.size(), " hosts");
}

// Returns inputs whose elements all differ. Each value is computed from the
// rank and the index.
Buffers InputsOf(const Plan& plan) {
  Buffers inputs(plan.ranks);
  for (int rank = 0; rank < plan.ranks; ++rank) {
    for (int64_t i = 0; i < plan.count; ++i) {
      const uint64_t value = ps::Mix(rank * 1'000'003ull + i);
      inputs[rank].push_back({value, value});
    }
  }
  return inputs;
}

std::vector<uint64_t> SumsOf(const Plan& plan, const Buffers& inputs) {
  std::vector<uint64_t> sums(plan.count);
  for (const auto& input : inputs) {
    for (int64_t i = 0; i < plan.count; ++i) sums[i] += input[i].sum;
  }
  return sums;
}

bool IsIn(int64_t i, const Range& range) {
  return i >= range.begin && i < range.begin + range.count;
}

// Checks the buffers after a plan against the table at MakeSchedule().
class Results {
 public:
  Results(const Plan& plan, const Buffers& inputs, const Buffers& results)
      : plan_(plan),
        inputs_(inputs),
        results_(results),
        sums_(SumsOf(plan, inputs)) {}

  // Returns the first error, or "".
  std::string Error() const {
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      for (int64_t i = 0; i < plan_.count; ++i) {
        if (!IsRight(rank, i)) {
          return absl::StrCat("rank ", rank, " has a wrong element ", i);
        }
      }
    }
    return "";
  }

 private:
  bool IsRight(int rank, int64_t i) const {
    const Element& result = results_[rank][i];
    const bool own = IsIn(i, BlockOf(rank, plan_.ranks, plan_.count));
    switch (plan_.operation) {
      case Operation::kAllReduce:
        return result.sum == sums_[i] && result == results_[0][i];
      case Operation::kReduceScatter:
        return !own || result.sum == sums_[i];
      case Operation::kReduce:
        return rank != plan_.root || result.sum == sums_[i];
      case Operation::kAllGather:
        return result == inputs_[OwnerOf(i)][i];
      case Operation::kGather:
        return rank != plan_.root || result == inputs_[OwnerOf(i)][i];
      case Operation::kBroadcast:
        return result == inputs_[plan_.root][i];
      case Operation::kScatter:
        return !own || result == inputs_[plan_.root][i];
      case Operation::kAllToAll: {
        const int64_t block = plan_.count / plan_.ranks;
        return result == inputs_[i / block][rank * block + i % block];
      }
      case Operation::kBarrier:
        return true;
    }
    return false;
  }

  int OwnerOf(int64_t i) const {
    int owner = 0;
    while (!IsIn(i, BlockOf(owner, plan_.ranks, plan_.count))) ++owner;
    return owner;
  }

  const Plan& plan_;
  const Buffers& inputs_;
  const Buffers& results_;
  const std::vector<uint64_t> sums_;
};

Ran RunAndCheck(const Plan& plan) {
  SCOPED_TRACE(Text(plan));
  EXPECT_TRUE(CheckPlan(plan).ok()) << CheckPlan(plan).message();
  const Buffers inputs = InputsOf(plan);
  Buffers data = inputs;
  const Ran ran = Simulate(plan, &data, inputs);
  EXPECT_EQ(ran.error, "");
  EXPECT_EQ(Results(plan, inputs, data).Error(), "");
  return ran;
}

// Checks the cost of a plan. Requires blocks and segments of equal sizes.
void CheckCost(const Plan& plan, const Ran& ran) {
  SCOPED_TRACE(Text(plan));
  const Cost cost = CostOf(plan);
  EXPECT_EQ(static_cast<double>(ran.total), cost.total);
  if (plan.algorithm == Algorithm::kHierarchical) {
    EXPECT_LE(static_cast<double>(ran.steps), cost.steps);
    // Allows for blocks between hosts that have one element more than the mean.
    const double uneven = 2.0 * static_cast<double>(plan.hosts.size());
    EXPECT_LE(static_cast<double>(ran.serial), cost.serial + uneven);
    EXPECT_LE(static_cast<double>(ran.reduced), cost.reduced + uneven);
  } else {
    EXPECT_EQ(static_cast<double>(ran.steps), cost.steps);
    EXPECT_EQ(static_cast<double>(ran.serial), cost.serial);
    EXPECT_EQ(static_cast<double>(ran.reduced), cost.reduced);
  }
}

const std::vector<Operation> kOperations = {
    Operation::kAllReduce, Operation::kReduceScatter, Operation::kAllGather,
    Operation::kBroadcast, Operation::kReduce,        Operation::kGather,
    Operation::kScatter,   Operation::kAllToAll,      Operation::kBarrier};

using Random = std::mt19937_64;

// Returns a random number in [least, most].
int Draw(Random* random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(*random);
}

Plan DrawPlan(Random* random, Operation operation, Algorithm algorithm,
              int ranks) {
  Plan plan;
  plan.operation = operation;
  plan.algorithm = algorithm;
  plan.ranks = ranks;
  plan.root = Draw(random, 0, ranks - 1);
  plan.segments = Draw(random, 1, 9);
  const int hosts = Draw(random, 1, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    plan.hosts.push_back(Draw(random, 0, hosts - 1));
  }
  plan.between_hosts = AlgorithmsOf(Operation::kAllReduce)[Draw(random, 0, 2)];
  return plan;
}

// Runs a plan with equal blocks, and with any number of elements.
void RunWithCounts(Random* random, Plan plan) {
  plan.count = plan.operation == Operation::kBarrier
                   ? 0
                   : int64_t{plan.ranks} * plan.segments;
  CheckCost(plan, RunAndCheck(plan));
  if (plan.operation == Operation::kBarrier) return;
  if (plan.operation == Operation::kAllToAll) {
    plan.count = plan.ranks * Draw(random, 0, 3);
  } else {
    plan.count = Draw(random, 0, 3 * plan.ranks);
  }
  RunAndCheck(plan);
}

uint64_t SeedOfThisRun() {
  if (const char* text = std::getenv("SEED")) {
    return std::strtoull(text, nullptr, 10);
  }
  return std::random_device()();
}

class EachOperation : public testing::TestWithParam<Operation> {
 protected:
  EachOperation() : random_(seed_) {
    std::printf("repeat with SEED=%llu\n",
                static_cast<unsigned long long>(seed_));
  }

  void Run(int ranks) {
    for (const Algorithm algorithm : AlgorithmsOf(GetParam())) {
      RunWithCounts(&random_, DrawPlan(&random_, GetParam(), algorithm, ranks));
    }
  }

  const uint64_t seed_ = SeedOfThisRun();
  Random random_;
};

TEST_P(EachOperation, IsRightForEachNumberOfRanksUpTo64) {
  for (int ranks = 1; ranks <= 64 && !HasFailure(); ++ranks) Run(ranks);
}

TEST_P(EachOperation, IsRightForUpTo1024Ranks) {
  Run(Draw(&random_, 65, 1024));
}

INSTANTIATE_TEST_SUITE_P(All, EachOperation, testing::ValuesIn(kOperations),
                         [](const testing::TestParamInfo<Operation>& info) {
                           return std::string(Name(info.param));
                         });

// The formulas of the sources, for powers of two.
TEST(Cost, IsThatOfTheLiteratureForPowersOfTwo) {
  Plan plan;
  plan.ranks = 16;
  plan.count = 1600;
  plan.algorithm = Algorithm::kRecursiveDoubling;
  EXPECT_EQ(CostOf(plan).steps, 4);
  EXPECT_EQ(CostOf(plan).serial, 4 * 1600);
  plan.algorithm = Algorithm::kHalvingDoubling;
  EXPECT_EQ(CostOf(plan).steps, 2 * 4);
  EXPECT_EQ(CostOf(plan).serial, 2 * 1500);
  plan.algorithm = Algorithm::kRing;
  EXPECT_EQ(CostOf(plan).steps, 2 * 15);
  EXPECT_EQ(CostOf(plan).serial, 2 * 1500);
  plan.operation = Operation::kScatter;
  plan.algorithm = Algorithm::kBinomialTree;
  EXPECT_EQ(CostOf(plan).total, 1600 * 4 / 2);
}

Action Act(int step, Action::Kind kind, int peer, int64_t begin,
           int64_t count) {
  Action action;
  action.step = step;
  action.kind = kind;
  action.peer = peer;
  action.range = {begin, count};
  return action;
}

// Returns the error of a simulation in which two ranks run these schedules.
std::string ErrorOf(const Schedule& first, const Schedule& second) {
  Buffers data(2, std::vector<Element>(4));
  return Simulate(
             2, [&](int rank) { return rank == 0 ? first : second; }, &data,
             data)
      .error;
}

constexpr auto kSend = Action::Kind::kSend;
constexpr auto kReceive = Action::Kind::kReceive;

TEST(Simulator, FindsADeadlock) {
  // Lets both ranks send before they receive, which is a deadlock.
  EXPECT_EQ(ErrorOf({Act(0, kSend, 1, 0, 1), Act(1, kReceive, 1, 0, 1)},
                    {Act(0, kSend, 0, 0, 1), Act(1, kReceive, 0, 0, 1)}),
            "rank 0, step 0: waits for ever");
}

TEST(Simulator, FindsUnequalCounts) {
  EXPECT_EQ(ErrorOf({Act(0, kSend, 1, 0, 2)}, {Act(0, kReceive, 0, 0, 1)}),
            "rank 1, step 0: receives another count than rank 0 sends");
}

TEST(Simulator, FindsARangeOutsideTheBuffer) {
  EXPECT_EQ(ErrorOf({Act(0, kSend, 1, 3, 2)}, {Act(0, kReceive, 0, 0, 2)}),
            "rank 0, step 0: a range ends at 5");
}

TEST(Simulator, FindsTwoReceivesOfOneRange) {
  EXPECT_EQ(ErrorOf({Act(0, kSend, 1, 0, 2), Act(0, kSend, 1, 0, 2)},
                    {Act(0, kReceive, 0, 0, 2), Act(0, kReceive, 0, 1, 2)}),
            "rank 1, step 0: two receives write one range");
}

}  // namespace
}  // namespace penstock::collectives
