#include "transport/paths/half_open.h"

#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace paths {
namespace {

TEST(HalfOpen, LetsInAsManyAsItsLimit) {
  HalfOpen half_open(2);
  const HalfOpen::Place first = half_open.Enter();
  const HalfOpen::Place second = half_open.Enter();
  EXPECT_NE(first, nullptr);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(half_open.Enter(), nullptr);
}

TEST(HalfOpen, WhoLeavesMakesRoom) {
  HalfOpen half_open(1);
  for (int i = 0; i < 10; ++i) {
    const HalfOpen::Place place = half_open.Enter();
    EXPECT_NE(place, nullptr) << i;
    EXPECT_EQ(half_open.Enter(), nullptr) << i;
  }
}

}  // namespace
}  // namespace paths
}  // namespace penstock
