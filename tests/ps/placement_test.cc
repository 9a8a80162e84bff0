#include "ps/placement.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace penstock::ps {
namespace {

using tensor::DType;

TEST(PlacementTest, LargestFirstToTheLeastLoaded) {
  std::vector<VariableSpec> specs = {{"a", DType::kF32, {10}},
                                     {"b", DType::kF32, {40}},
                                     {"c", DType::kF32, {30}},
                                     {"d", DType::kF64, {10}}};
  // b 160, c 120, d 80, a 40.
  EXPECT_EQ(*Place(specs, 2), (std::vector<size_t>{0, 0, 1, 1}));
}

TEST(PlacementTest, OrderOfTheListDoesNotMatter) {
  std::vector<VariableSpec> specs;
  for (int i = 0; i < 20; ++i) {
    specs.push_back(
        {std::string(1, static_cast<char>('a' + i)), DType::kF32, {1 + i / 4}});
  }
  auto forward = *Place(specs, 3);
  std::reverse(specs.begin(), specs.end());
  auto backward = *Place(specs, 3);
  std::reverse(backward.begin(), backward.end());
  EXPECT_EQ(forward, backward);
}

TEST(PlacementTest, BadInputIsNamed) {
  EXPECT_FALSE(Place({}, 0).ok());
  EXPECT_FALSE(Place({{"", DType::kF32, {1}}}, 1).ok());
  auto twice = Place({{"x", DType::kF32, {1}}, {"x", DType::kF32, {2}}}, 1);
  EXPECT_NE(twice.status().message().find("x"), absl::string_view::npos);
  EXPECT_FALSE(Place({{"x", DType::kF32, {-1}}}, 1).ok());
}

TEST(PlacementTest, MoreServersThanVariables) {
  EXPECT_EQ(*Place({{"x", DType::kF32, {1}}}, 4), std::vector<size_t>{0});
}

}  // namespace
}  // namespace penstock::ps
