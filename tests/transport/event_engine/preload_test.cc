// Tests penstock-run with programs that know nothing of Penstock.

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/process/child.h"

namespace penstock {
namespace {

using process::Child;
using testing::HasSubstr;
using testing::Not;

struct Ended {
  int code = -1;
  std::string output;
};

Ended RunCarried(std::vector<std::string> command,
                 const std::vector<std::string>& environment = {}) {
  command.insert(command.begin(), "./penstock-run");
  Ended ended;
  auto child = Child::Start(std::move(command), environment);
  if (child == nullptr) return ended;
  ended.output = child->ReadAll();
  ended.code = child->Finish();
  return ended;
}

// Runs a program that makes servers and channels by the core's functions.
// Requires a path, because the program may end before its connection moves.
TEST(PreloadTest, ProgramIsCarried) {
  const Ended ended = RunCarried({"tests/preload/core", "threads"},
                                 {"PENSTOCK_POLICY=require"});
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("connection to ipv4:127.0.0.1"));
  EXPECT_THAT(ended.output, HasSubstr(": shm ("));
}

TEST(PreloadTest, BadSettingIsLogged) {
  const Ended ended =
      RunCarried({"tests/preload/core", "threads"}, {"PENSTOCK_FABRICS=fast"});
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("Penstock is not used"));
}

TEST(PreloadTest, OffIsStock) {
  const Ended ended =
      RunCarried({"tests/preload/core", "threads"}, {"PENSTOCK_POLICY=off"});
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, Not(HasSubstr("enstock")));
}

TEST(PreloadTest, StaticProgramSaysSoAndRuns) {
  const Ended ended = RunCarried({"tests/preload/static"});
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("static is statically linked"));
}

TEST(PreloadTest, ProgramWithItsOwnGrpcSaysSoAndRuns) {
  const Ended ended = RunCarried({"tests/preload/linked"});
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("linked has gRPC linked into it"));
}

}  // namespace
}  // namespace penstock
