// Runs the kernels' own code with the plans for a launch. Runs the threads of a
// launch one after another. A device would give the same results, except for
// the work of its compiler.

#include "transport/device/kernels/reduce_thread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/transport/device/kernels/cases.h"
#include "transport/device/kernels/launch_plan.h"

namespace penstock::device::kernels {
namespace {

using Kernel = void (*)(const Arguments&, uint64_t, uint64_t);

// Chooses the kernel as reduce.cu does.
Kernel KernelOf(const std::string& name) {
  static const auto& kernels = *new std::map<std::string, Kernel>{
      {"penstock_sum_f32", ReduceThread<Operation::kSum, float>},
      {"penstock_sum_f16", ReduceThread<Operation::kSum, Half>},
      {"penstock_sum_bf16", ReduceThread<Operation::kSum, Bfloat16>},
      {"penstock_mean_f32", ReduceThread<Operation::kMean, float>},
      {"penstock_mean_f16", ReduceThread<Operation::kMean, Half>},
      {"penstock_mean_bf16", ReduceThread<Operation::kMean, Bfloat16>},
      {"penstock_scaled_add_f32", ReduceThread<Operation::kScaledAdd, float>},
      {"penstock_scaled_add_f16", ReduceThread<Operation::kScaledAdd, Half>},
      {"penstock_scaled_add_bf16",
       ReduceThread<Operation::kScaledAdd, Bfloat16>},
  };
  return kernels.at(name);
}

// Runs the blocks in any order, as a device does.
void Launch(const LaunchPlan& plan, Random* random) {
  std::vector<uint64_t> threads(uint64_t{plan.blocks} * plan.threads);
  std::iota(threads.begin(), threads.end(), 0);
  std::shuffle(threads.begin(), threads.end(), *random);
  for (uint64_t thread : threads) {
    KernelOf(plan.kernel)(plan.arguments, thread, threads.size());
  }
}

TEST(ReduceThreadTest, ALaunchGivesEachBitOfTheReference) {
  const uint32_t seed = std::random_device()();
  Random random(seed);
  int with_vectors = 0;
  for (int i = 0; i < 1000; ++i) {
    Case one(&random);
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ", " << i << ": " << one);
    const std::vector<uint32_t> expected = one.Expected();
    const int multiprocessors = static_cast<int>(Draw(&random, 1, 3));
    const auto plan = PlanLaunch(one.reduction(), multiprocessors);
    ASSERT_TRUE(plan.ok());
    with_vectors += plan->arguments.vectors > 0;
    Launch(*plan, &random);
    ASSERT_EQ(one.Output(), expected);
    ASSERT_TRUE(one.NothingElseWasWritten());
  }
  EXPECT_GT(with_vectors, 500);
}

// Tests a launch of a single block, whose threads take several elements each.
TEST(ReduceThreadTest, FewThreadsDoManyElements) {
  const std::vector<float> input(50001, 1.5f);
  std::vector<float> sum(50001);
  const std::vector<const void*> inputs = {input.data(), input.data()};
  auto plan = PlanLaunch(
      {Operation::kSum, ElementType::kF32, 50001, inputs, sum.data()}, 1);
  ASSERT_TRUE(plan.ok());
  plan->blocks = 1;
  Random random(1);
  Launch(*plan, &random);
  EXPECT_EQ(sum, std::vector<float>(50001, 3.0f));
}

}  // namespace
}  // namespace penstock::device::kernels
