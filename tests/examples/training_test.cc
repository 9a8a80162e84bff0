#include "examples/digits/training.h"

#include <gtest/gtest.h>

namespace penstock::digits {
namespace {

TEST(TrainingTest, MedianIsTheMiddleOrTheMeanOfTheTwoInTheMiddle) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({9, 1, 4}), 4);
  EXPECT_EQ(Median({9, 1, 4, 6}), 5);
}

TEST(TrainingTest, PathsThatAgreeAreOneName) {
  EXPECT_EQ(Summarize({}), "unknown");
  EXPECT_EQ(Summarize({{0, 0, "shm"}, {0, 1, "shm"}, {1, 0, "shm"}}), "shm");
}

TEST(TrainingTest, PathsThatDifferAreAllNamed) {
  EXPECT_EQ(Summarize({{0, 0, "shm"}, {0, 1, "tcp"}, {1, 0, "shm"}}),
            "worker 0 - server 0: shm; worker 0 - server 1: tcp; "
            "worker 1 - server 0: shm");
}

}  // namespace
}  // namespace penstock::digits
