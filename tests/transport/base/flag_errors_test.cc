// Tests the error texts for a wrong command line.

#include "transport/base/flag_errors.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace base {
namespace {

TEST(NearestTest, NothingIsNearToSomethingElse) {
  EXPECT_EQ(Nearest("PENSTOCK_POLICE", {"PENSTOCK_POLICY", "PENSTOCK_LOG"}),
            "PENSTOCK_POLICY");
  EXPECT_EQ(Nearest("doctr", {"doctor", "ping"}), "doctor");
  EXPECT_EQ(Nearest("xyz", {"doctor", "ping"}), "");
  EXPECT_EQ(Nearest("", {"doctor"}), "");
  EXPECT_EQ(Nearest(std::string(1 << 20, 'x'), {"doctor"}), "");
}

TEST(UnknownFlagTest, TheNearestIsNamed) {
  const std::vector<std::string> known = {"--quick", "--sizes"};
  EXPECT_EQ(UnknownFlag("--quik", known),
            "there is no flag --quik: did you mean --quick?");
  EXPECT_EQ(UnknownFlag("--size=8", known),
            "there is no flag --size=8: did you mean --sizes?");
  EXPECT_EQ(UnknownFlag("--zzzzzzzz", known), "there is no flag --zzzzzzzz");
  EXPECT_EQ(UnknownFlag("quick", known), "\"quick\" is no flag");
  EXPECT_EQ(UnknownFlag("\x1b", known), "\"\\x1b\" is no flag");
}

TEST(FlagWithoutValueTest, TheFirstIsNamed) {
  EXPECT_EQ(FlagWithoutValue({"--a=1", "--b=", "--c="}), "--b= needs a value");
  EXPECT_EQ(FlagWithoutValue({}), "");
  EXPECT_EQ(FlagWithoutValue({"--a", "", "=", "x=", "--b=c=", "-"}), "");
}

}  // namespace
}  // namespace base
}  // namespace penstock
