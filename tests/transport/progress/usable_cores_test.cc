#include "transport/progress/usable_cores.h"

#include "gtest/gtest.h"

namespace penstock {
namespace progress {
namespace {

TEST(UsableCores, AreAtLeastOne) { EXPECT_GE(UsableCores(), 1); }

TEST(UsableCores, QuotaIsTheRatio) {
  EXPECT_DOUBLE_EQ(ParseCpuMax("250000 100000\n"), 2.5);
}

TEST(UsableCores, AnythingElseIsNoQuota) {
  for (const char* text : {"max 100000", "", "1", "1 0", "-1 100", "1 2 3"}) {
    EXPECT_EQ(ParseCpuMax(text), 0) << text;
  }
}

}  // namespace
}  // namespace progress
}  // namespace penstock
