#include "examples/digits/training.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "examples/digits/process.h"

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

TEST(ProcessTest, InputOutputAndEnvironmentAreTheCallers) {
  auto process = Process::Start(
      "/bin/sh", {"-c", "read line && echo \"$line $PENSTOCK_TEST\""},
      {"PENSTOCK_TEST=two"});
  ASSERT_TRUE(process.ok()) << process.status();
  ASSERT_TRUE(process->Tell("one").ok());
  while (process->ReadSome()) {
  }
  EXPECT_EQ(process->NextLine(), "one two");
  EXPECT_TRUE(process->Wait().ok());
}

TEST(ProcessTest, EnvironmentGivenWinsOverOnesOwn) {
  setenv("PENSTOCK_TEST", "own", 1);
  auto process = Process::Start("/bin/sh", {"-c", "echo \"$PENSTOCK_TEST\""},
                                {"PENSTOCK_TEST=given"});
  ASSERT_TRUE(process.ok()) << process.status();
  while (process->ReadSome()) {
  }
  EXPECT_EQ(process->NextLine(), "given");
}

TEST(ProcessTest, TellingTheDeadIsAnErrorAndNoSignal) {
  auto process = Process::Start("/bin/sh", {"-c", "exit 3"});
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_FALSE(process->Wait().ok());
  EXPECT_EQ(process->Tell("hello").code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace penstock::digits
