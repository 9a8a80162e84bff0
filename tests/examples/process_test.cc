#include "examples/common/process.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace penstock::examples {
namespace {

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
}  // namespace penstock::examples
