#include "tensor_service/rendezvous/step_members.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace penstock::tensor {
namespace {

TEST(StepMembers, KnowsWhoHasJoinedWhat) {
  StepMembers members;
  members.Join("a", "one", 7);
  EXPECT_TRUE(members.Has("one", 7));
  EXPECT_FALSE(members.Has("one", 8));
  EXPECT_FALSE(members.Has("two", 7));
  EXPECT_FALSE(members.Has("a", 7));
}

TEST(StepMembers, MemberIsTheSameByAnyCaller) {
  StepMembers members;
  members.Join("a", "one", 1);
  members.Join("b", "one", 2);
  EXPECT_TRUE(members.Has("one", 1));
  EXPECT_TRUE(members.Has("one", 2));
}

TEST(StepMembers, LastStepsAreRemembered) {
  StepMembers members;
  for (uint64_t step = 0; step <= StepMembers::kMaxSteps; ++step) {
    members.Join("a", "one", step);
    members.Join("a", "one", step);  // the same member
  }
  EXPECT_FALSE(members.Has("one", 0));
  for (uint64_t step = 1; step <= StepMembers::kMaxSteps; ++step) {
    EXPECT_TRUE(members.Has("one", step)) << step;
  }
}

TEST(StepMembers, CallerDisplacesOnlyItsOwnMembers) {
  StepMembers members;
  members.Join("a", "one", 1);
  for (size_t i = 0; i <= StepMembers::kMaxMembersEach; ++i) {
    members.Join("b", absl::StrCat("m", i), 1);
  }
  EXPECT_TRUE(members.Has("one", 1));
  EXPECT_FALSE(members.Has("m0", 1));
  EXPECT_TRUE(members.Has("m1", 1));
}

TEST(StepMembers, CallersThatStayAwayLongestAreForgotten) {
  StepMembers members;
  members.Join("stays", "one", 1);
  members.Join("goes", "two", 1);
  for (size_t i = 1; i < StepMembers::kMaxCallers; ++i) {
    members.Join(absl::StrCat("c", i), absl::StrCat("m", i), 1);
    members.Join("stays", "one", 1);
  }
  EXPECT_TRUE(members.Has("one", 1));
  EXPECT_FALSE(members.Has("two", 1));
  EXPECT_TRUE(members.Has("m1", 1));
}

}  // namespace
}  // namespace penstock::tensor
