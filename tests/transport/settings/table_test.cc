// Tests rules for each row of the table of settings.

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "transport/base/log.h"
#include "transport/settings/description.h"
#include "transport/settings/settings.h"
#include "transport/settings/shm_arena.h"
#include "transport/settings/tcp_sockets.h"

namespace penstock {
namespace {

// A value that is invalid for every setting: not a word, number, device,
// address or path.
constexpr char kBad[] = "x/y";

// The results that a channel and the process get from the environment.
struct Answers {
  absl::StatusOr<Settings> settings = ResolveSettings({});
  absl::Status process = ResolvePolling().status();

  Answers() {
    process.Update(ResolveShmHugePages().status());
    process.Update(ResolveShmArenaBytes().status());
    process.Update(ResolveTcpSockets().status());
    process.Update(ResolveStubMemory().status());
    process.Update(ResolveMetrics().status());
    process.Update(ResolveStatusSocket().status());
    process.Update(ResolveTrace().status());
    process.Update(ResolveRecord().status());
  }
};

// Returns the settings whose effect this test can check. log_test checks the
// setting of the log.
std::vector<Description> Resolved() {
  std::vector<Description> settings = DescribeSettings();
  settings.erase(std::remove_if(settings.begin(), settings.end(),
                                [](const Description& each) {
                                  return each.variable == base::kLogVariable;
                                }),
                 settings.end());
  return settings;
}

// Returns the results in an environment where only `setting` is set, to
// `value`.
Answers With(const Description& setting, const std::string& value) {
  for (const Description& each : DescribeSettings()) {
    unsetenv(each.variable.c_str());
  }
  setenv(setting.variable.c_str(), value.c_str(), /*replace=*/1);
  Answers answers;
  unsetenv(setting.variable.c_str());
  return answers;
}

TEST(SettingsTable, SayingTheDefaultChangesNothing) {
  for (const Description& each : Resolved()) {
    if (each.default_value.empty()) continue;
    const Answers answers = With(each, each.default_value);
    ASSERT_TRUE(answers.settings.ok()) << answers.settings.status();
    EXPECT_EQ(answers.settings->ToString(), Settings().ToString());
    EXPECT_TRUE(answers.process.ok()) << answers.process;
  }
}

TEST(SettingsTable, ABadValueNamesTheVariableAndWhatIsAllowed) {
  for (const Description& each : Resolved()) {
    const absl::Status error = absl::InvalidArgumentError(absl::StrCat(
        each.variable, "=", kBad, " is not a setting: use ", each.values));
    const bool is_of_process = each.field.empty();
    const Answers answers = With(each, kBad);
    EXPECT_EQ(answers.process, is_of_process ? error : absl::OkStatus());
    EXPECT_EQ(answers.settings.status(),
              is_of_process ? absl::OkStatus() : error);
  }
}

// Tests empty values: compose files and systemd units set a variable without a
// value to the empty text.
TEST(SettingsTable, AnEmptyValueCountsAsUnset) {
  for (const Description& each : Resolved()) {
    const Answers answers = With(each, "");
    ASSERT_TRUE(answers.settings.ok()) << answers.settings.status();
    EXPECT_EQ(answers.settings->ToString(), Settings().ToString())
        << each.variable;
    EXPECT_EQ(answers.process, absl::OkStatus()) << each.variable;
  }
}

TEST(CheckVariableTest, EachDefaultIsAValueAndSoIsTheEmptyText) {
  for (const Description& each : DescribeSettings()) {
    EXPECT_EQ(CheckVariable(each.variable, each.default_value),
              absl::OkStatus());
    EXPECT_EQ(CheckVariable(each.variable, ""), absl::OkStatus());
    const absl::Status bad = CheckVariable(each.variable, kBad);
    EXPECT_EQ(bad.code(), absl::StatusCode::kInvalidArgument) << each.variable;
    EXPECT_NE(bad.message().find(each.values), std::string::npos) << bad;
  }
}

TEST(CheckVariableTest, AnUnknownVariableIsNotFound) {
  EXPECT_EQ(CheckVariable("PENSTOCK_FABRIC", "shm").code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace penstock
