#include "ps/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ps/gradients.h"

namespace penstock::ps {
namespace {

using tensor::DType;
using tensor::Tensor;

TEST(SgdTest, MovesAgainstTheGradient) {
  auto sgd = *MakeSgd(0.5);
  Tensor variable = *Tensor::Of<float>({2}, {1, 2});
  ASSERT_TRUE(
      sgd->Apply("v", *Tensor::Of<float>({2}, {2, -4}), &variable).ok());
  EXPECT_EQ((*variable.flat<float>())[0], 0);
  EXPECT_EQ((*variable.flat<float>())[1], 4);
}

TEST(SgdTest, RefusesWhatItCannotTrain) {
  auto sgd = *MakeSgd(0.5);
  EXPECT_TRUE(sgd->Supports(DType::kF64).ok());
  EXPECT_FALSE(sgd->Supports(DType::kInt32).ok());
  Tensor variable = *Tensor::Of<float>({2}, {1, 2});
  EXPECT_FALSE(sgd->Apply("v", *Tensor::Of<float>({1}, {1}), &variable).ok());
  EXPECT_FALSE(MakeSgd(0).ok());
  EXPECT_FALSE(MakeSgd(std::nan("")).ok());
}

TEST(CheckFiniteTest, FindsTheOneBadElementWhereverItIs) {
  for (size_t at = 0; at < 21; ++at) {
    for (float bad :
         {std::numeric_limits<float>::infinity(), -HUGE_VALF, std::nanf("")}) {
      std::vector<float> values(21, std::numeric_limits<float>::max());
      EXPECT_TRUE(CheckFinite(*Tensor::Of<float>({21}, values)).ok());
      values[at] = bad;
      EXPECT_FALSE(CheckFinite(*Tensor::Of<float>({21}, values)).ok());
    }
  }
  EXPECT_FALSE(CheckFinite(*Tensor::Of<double>({1}, {HUGE_VAL})).ok());
}

TEST(MeanTest, IsElementWise) {
  auto mean =
      Mean({*Tensor::Of<float>({2}, {1, 2}), *Tensor::Of<float>({2}, {3, 6})});
  ASSERT_TRUE(mean.ok());
  EXPECT_EQ((*mean->flat<float>())[0], 2);
  EXPECT_EQ((*mean->flat<float>())[1], 4);
}

TEST(MeanTest, MismatchIsRefused) {
  EXPECT_FALSE(Mean({}).ok());
  EXPECT_FALSE(
      Mean({*Tensor::Of<float>({1}, {1}), *Tensor::Of<float>({2}, {3, 6})})
          .ok());
}

}  // namespace
}  // namespace penstock::ps
