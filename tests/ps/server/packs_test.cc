// Tests small variables that share a part. Users see them under their own
// names.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "ps/server/server.h"
#include "tests/ps/server/small_server.h"

namespace penstock::ps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr View kView = SmallServer::kView;
constexpr WorkerId kChief = {0, 11};

class PacksTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        server_.Define({{DenseTable("a", {2}), DenseTable("b", {3})}}).ok());
    ASSERT_TRUE(server_->Join(kView, kChief).ok());
  }

  static tensor::Bundle Pack(float of_a, float of_b) {
    return {{Floats("pack 0", {5}, {1, of_a, 1, 1, of_b})}};
  }

  SmallServer server_;
};

TEST_F(PacksTest, WhatIsNotFiniteIsNamedByItsTable) {
  const auto values = server_->Initialize(kView, kChief, Pack(1, INFINITY));
  EXPECT_THAT(
      std::string(values.status().message()),
      AllOf(HasSubstr("variable b: element 2 is inf"), Not(HasSubstr("clip"))));
  ASSERT_TRUE(server_->Initialize(kView, kChief, Pack(1, 1e30F)).ok());
  const auto push = [this](float of_a, float of_b) {
    return std::string(
        server_.Push(kChief, 0, Pack(of_a, of_b)).status().message());
  };
  EXPECT_THAT(push(1, std::nanf("")),
              HasSubstr("variable b: element 2 is nan; clip the gradients"));
  EXPECT_THAT(push(2e18F, -INFINITY), HasSubstr("variable a: element 1 is 2e"));
  EXPECT_EQ(push(1e18F, 1), "");
}

}  // namespace
}  // namespace penstock::ps
