#include "transport/device/kernels/launch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace penstock::device::kernels {
namespace {

using testing::HasSubstr;

const void* At(uint64_t address) {
  return reinterpret_cast<const void*>(address);
}
void* OutputAt(uint64_t address) { return reinterpret_cast<void*>(address); }

// A sum of two arrays. The arrays are never read.
struct Sum {
  uint64_t count = 1000;
  std::vector<const void*> inputs = {At(0x10000), At(0x20000)};
  uint64_t output = 0x30000;
  ElementType type = ElementType::kF32;
  Operation operation = Operation::kSum;

  absl::StatusOr<LaunchPlan> Plan(int multiprocessors = 100) const {
    return PlanLaunch({operation, type, count, inputs, OutputAt(output), 0.5f},
                      multiprocessors);
  }
  std::string Refusal() const {
    const absl::Status status = Plan().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }
};

TEST(LaunchPlanTest, TheArgumentsAreThoseOfTheReduction) {
  const auto plan = Sum().Plan();
  ASSERT_TRUE(plan.ok());
  EXPECT_STREQ(plan->kernel, "penstock_sum_f32");
  EXPECT_EQ(plan->arguments.inputs[0], At(0x10000));
  EXPECT_EQ(plan->arguments.inputs[1], At(0x20000));
  EXPECT_EQ(plan->arguments.output, At(0x30000));
  EXPECT_EQ(plan->arguments.count, 1000u);
  EXPECT_EQ(plan->arguments.fan_in, 2u);
}

TEST(LaunchPlanTest, ArraysAlignedToVectorsHaveNoHead) {
  Sum sum;
  sum.count = 1003;
  EXPECT_EQ(sum.Plan()->arguments.head, 0u);
  EXPECT_EQ(sum.Plan()->arguments.vectors, 250u);
  sum.type = ElementType::kBf16;
  EXPECT_EQ(sum.Plan()->arguments.vectors, 125u);
}

TEST(LaunchPlanTest, ArraysThatAreMisalignedAlikeBeginWithAHead) {
  Sum sum;
  sum.type = ElementType::kF16;
  sum.inputs = {At(0x10006), At(0x20006)};
  sum.output = 0x30006;
  const auto plan = sum.Plan();
  EXPECT_EQ(plan->arguments.head, 5u);
  EXPECT_EQ(plan->arguments.vectors, (1000u - 5) / 8);
  sum.count = 3;
  EXPECT_EQ(sum.Plan()->arguments.head, 3u);
  EXPECT_EQ(sum.Plan()->arguments.vectors, 0u);
}

TEST(LaunchPlanTest, OneArrayThatIsMisalignedElseLeavesNoVectors) {
  Sum sum;
  sum.inputs[1] = At(0x20004);
  EXPECT_EQ(sum.Plan()->arguments.vectors, 0u);
  sum = Sum();
  sum.output += 8;
  EXPECT_EQ(sum.Plan()->arguments.vectors, 0u);
}

TEST(LaunchPlanTest, BlocksAreNoMoreThanThereIsWorkFor) {
  Sum sum;
  sum.count = 0;
  EXPECT_EQ(sum.Plan()->blocks, 0u);
  sum.count = 1;
  EXPECT_EQ(sum.Plan()->blocks, 1u);
  sum.count = 256 * 4 + 3;  // one block's vectors, and 3 elements more
  EXPECT_EQ(sum.Plan()->blocks, 1u);
  sum.count = 257 * 4;
  EXPECT_EQ(sum.Plan()->blocks, 2u);
  sum.output += 4;  // not aligned, so threads take single elements
  EXPECT_EQ(sum.Plan()->blocks, 5u);
}

TEST(LaunchPlanTest, BlocksAreNoMoreThanTheDeviceRunsAtOnce) {
  Sum sum;
  sum.count = uint64_t{1} << 40;
  sum.inputs = {At(uint64_t{1} << 50), At(uint64_t{1} << 51)};
  sum.output = uint64_t{1} << 52;
  EXPECT_EQ(sum.Plan(132)->blocks, 132u * 8);
  EXPECT_EQ(sum.Plan(132)->arguments.vectors, uint64_t{1} << 38);
  EXPECT_EQ(sum.Plan(std::numeric_limits<int>::max()).status(),
            absl::OkStatus());
  EXPECT_FALSE(sum.Plan(0).ok());
  EXPECT_FALSE(sum.Plan(-1).ok());
}

TEST(LaunchPlanTest, TheScaleIsTheFactorOrTheInverseOfN) {
  Sum sum;
  sum.operation = Operation::kMean;
  sum.inputs = {At(0x10000), At(0x20000), At(0x40000)};
  EXPECT_EQ(sum.Plan()->arguments.scale, 1.0f / 3);
  sum.operation = Operation::kScaledAdd;
  sum.inputs.resize(1);
  EXPECT_EQ(sum.Plan()->arguments.scale, 0.5f);
  EXPECT_STREQ(sum.Plan()->kernel, "penstock_scaled_add_f32");
}

TEST(LaunchPlanTest, AnOutputMayBeAnInputButNotOverlapOne) {
  Sum sum;
  sum.output = 0x10000;
  EXPECT_TRUE(sum.Plan().ok());
  sum.output = 0x10000 + 3996;
  EXPECT_THAT(sum.Refusal(), HasSubstr("input 0 overlaps the output"));
  sum.output = 0x20000 - 3996;
  EXPECT_THAT(sum.Refusal(), HasSubstr("input 1 overlaps the output"));
  sum.output = 0x10000 + 4000;
  EXPECT_TRUE(sum.Plan().ok());
  sum.output = 0x20000 - 4000;
  EXPECT_TRUE(sum.Plan().ok());
}

TEST(LaunchPlanTest, InputsMayBeTheSameArray) {
  Sum sum;
  sum.inputs = {At(0x10000), At(0x10000), At(0x10004)};
  EXPECT_TRUE(sum.Plan().ok());
}

TEST(LaunchPlanTest, WrongNumbersOfInputsAreRefused) {
  Sum sum;
  sum.inputs.clear();
  EXPECT_THAT(sum.Refusal(), HasSubstr("there are no inputs"));
  sum.inputs.assign(8, At(0x10000));
  EXPECT_TRUE(sum.Plan().ok());
  sum.inputs.assign(9, At(0x10000));
  EXPECT_THAT(sum.Refusal(), HasSubstr("9 inputs; at most 8"));
  sum.operation = Operation::kScaledAdd;
  sum.inputs.resize(2);
  EXPECT_THAT(sum.Refusal(), HasSubstr("has one input, not 2"));
}

TEST(LaunchPlanTest, BadAddressesAreRefusedByName) {
  Sum sum;
  sum.inputs[1] = nullptr;
  EXPECT_THAT(sum.Refusal(), HasSubstr("input 1 is null"));
  sum = Sum();
  sum.output = 0;
  EXPECT_THAT(sum.Refusal(), HasSubstr("the output is null"));
  sum = Sum();
  sum.inputs[0] = At(0x10002);
  EXPECT_THAT(sum.Refusal(), HasSubstr("input 0 at 0x10002 is not aligned"));
  sum.type = ElementType::kF16;
  EXPECT_TRUE(sum.Plan().ok());
  sum.output = 0x30001;
  EXPECT_THAT(sum.Refusal(), HasSubstr("the output at 0x30001 is not aligned"));
}

TEST(LaunchPlanTest, CountsThatNoMemoryHoldsAreRefused) {
  Sum sum;
  sum.count = std::numeric_limits<uint64_t>::max();
  EXPECT_THAT(sum.Refusal(), HasSubstr("are too many"));
  sum.count = std::numeric_limits<uint64_t>::max() / 4;
  EXPECT_THAT(sum.Refusal(), HasSubstr("ends after the last address"));
  // Expects that a plan may use the very last bytes.
  sum.count = 4;
  sum.output = std::numeric_limits<uint64_t>::max() - 15;
  EXPECT_TRUE(sum.Plan().ok());
  sum.count = 5;
  EXPECT_THAT(sum.Refusal(), HasSubstr("ends after the last address"));
}

TEST(LaunchPlanTest, NothingIsReducedOfNoElementsWithoutArrays) {
  Sum sum;
  sum.count = 0;
  sum.inputs = {nullptr, nullptr};
  sum.output = 0;
  ASSERT_TRUE(sum.Plan().ok());
  EXPECT_EQ(sum.Plan()->blocks, 0u);
}

}  // namespace
}  // namespace penstock::device::kernels
