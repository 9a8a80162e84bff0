// Runs gRPC's own interoperability programs against one another, over each
// path: each case of interop_client, and stress_test's mix of calls, cancels
// and deadlines on several channels. Over "Stock" the programs are unmodified.

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "test/core/util/port.h"
#include "tests/e2e/child.h"

namespace penstock {
namespace {

using e2e::Child;

// Excludes cases that need Google's credentials, long_lived_channel
// (large_unary with pauses), and slow_consumer, see below.
const char* const kCases[] = {
    "cancel_after_begin",
    "cancel_after_first_response",
    "channel_soak",
    "client_compressed_streaming",
    "client_compressed_unary",
    "client_streaming",
    "custom_metadata",
    "empty_stream",
    "empty_unary",
    "half_duplex",
    "large_unary",
    "ping_pong",
    "rpc_soak",
    "server_compressed_streaming",
    "server_compressed_unary",
    "server_streaming",
    "special_status_message",
    "status_code_and_message",
    "timeout_on_sleeping_server",
    "unimplemented_method",
    "unimplemented_service",
};

// {number in the stress test's log: name}
using StressCases = std::map<int, std::string>;

// All cases except slow_consumer.
const StressCases kAllCases = {
    {0, "empty_unary"},
    {1, "large_unary"},
    {2, "client_compressed_unary"},
    {3, "client_compressed_streaming"},
    {4, "client_streaming"},
    {5, "server_streaming"},
    {6, "server_compressed_unary"},
    {7, "server_compressed_streaming"},
    {9, "half_duplex"},
    {10, "ping_pong"},
    {11, "cancel_after_begin"},
    {12, "cancel_after_first_response"},
    {13, "timeout_on_sleeping_server"},
    {14, "empty_stream"},
    {15, "status_code_and_message"},
    {16, "custom_metadata"},
};

// The stress cases with messages of hundreds of kilobytes, mixed with cancelled
// calls.
const StressCases kCancels = {
    {1, "large_unary"},
    {11, "cancel_after_begin"},
    {12, "cancel_after_first_response"},
    {13, "timeout_on_sleeping_server"},
};

// The number of attempts to reach a server that was just started.
constexpr int kAttempts = 100;

std::string stress_seconds = "5";

std::vector<std::string> Paths() {
  if (std::getenv("RDMA_VM") != nullptr) return {"Verbs"};
  return {"Stock", "Shm", "Tcp"};
}

// Returns settings that make the client require its path. No call can then use
// another path.
std::vector<std::string> SettingsOf(const std::string& path,
                                    const std::string& device) {
  if (path == "Stock") return {"PENSTOCK_POLICY=off"};
  if (path == "Shm") {
    return {"PENSTOCK_POLICY=require", "PENSTOCK_FABRICS=shm"};
  }
  if (path == "Tcp") {
    return {"PENSTOCK_POLICY=require", "PENSTOCK_FABRICS=tcp"};
  }
  return {"PENSTOCK_POLICY=require", "PENSTOCK_FABRICS=verbs",
          "PENSTOCK_VERBS_DEVICE=" + device};
}

// Returns true if gRPC logged the line as an error: a letter and the day.
bool IsError(absl::string_view line) {
  int day;
  return absl::ConsumePrefix(&line, "E") &&
         absl::SimpleAtoi(line.substr(0, 4), &day);
}

std::string ErrorsIn(const std::string& log) {
  return absl::StrJoin(absl::StrSplit(log, '\n', IsError), "\n");
}

// Counts the beginnings of each case in the stress test.
std::map<int, int> CountCases(const std::string& log) {
  std::map<int, int> counts;
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits("Executing the test case ", 1));
    int number;
    if (absl::SimpleAtoi(parts.second, &number)) ++counts[number];
  }
  return counts;
}

struct Ended {
  int code;  // -1 for a signal
  std::string log;
};

class InteropProgramsTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    port_ = grpc_pick_unused_port_or_die();
    // Makes the server silent, because its output is not read during calls.
    server_ = Start("interop_server", "rxe1", "NONE",
                    {absl::StrCat("--port=", port_)});
    ASSERT_NE(server_, nullptr);
    Ended ended = RunCase("empty_unary");
    for (int i = 0; ended.code != 0 && i < kAttempts; ++i) {
      ended = RunCase("empty_unary");
    }
    ASSERT_EQ(ended.code, 0) << "no server: " << ended.log;
  }

  // Expects that the server has survived.
  void TearDown() override {
    const Ended ended = RunCase("empty_unary");
    EXPECT_EQ(ended.code, 0) << ended.log;
  }

  Ended RunCase(const std::string& name) const {
    return Run("interop_client", "INFO",
               {absl::StrCat("--server_port=", port_), "--test_case=" + name,
                "--soak_iterations=10",
                "--soak_per_iteration_max_acceptable_latency_ms=10000",
                "--soak_overall_timeout_seconds=60"});
  }

  // Runs all of `cases` equally often, on 4 channels with 4 stubs each.
  void ExpectNoErrors(const StressCases& cases) const {
    std::vector<std::string> weights;
    for (const auto& known : cases) weights.push_back(known.second + ":1");
    const Ended ended =
        Run("stress_client", "DEBUG",
            {absl::StrCat("--server_addresses=localhost:", port_),
             "--test_cases=" + absl::StrJoin(weights, ","),
             "--test_duration_secs=" + stress_seconds,
             "--num_channels_per_server=4", "--num_stubs_per_channel=4",
             "--metrics_port=0", "--log_level=0"});
    EXPECT_EQ(ended.code, 0);
    EXPECT_EQ(ErrorsIn(ended.log), "");
    const std::map<int, int> counts = CountCases(ended.log);
    for (const auto& known : cases) {
      EXPECT_EQ(counts.count(known.first), 1) << known.second << " never ran";
    }
  }

 private:
  std::unique_ptr<Child> Start(const std::string& program,
                               const std::string& device,
                               const std::string& verbosity,
                               std::vector<std::string> flags) const {
    flags.insert(flags.begin(), "tests/grpc_end2end/" + program);
    std::vector<std::string> settings = SettingsOf(GetParam(), device);
    settings.push_back("GRPC_VERBOSITY=" + verbosity);
    settings.push_back("PENSTOCK_LOG=error");
    return Child::Start(std::move(flags), settings);
  }

  Ended Run(const std::string& program, const std::string& verbosity,
            std::vector<std::string> flags) const {
    const auto child = Start(program, "rxe0", verbosity, std::move(flags));
    if (child == nullptr) return {-1, "it cannot be started"};
    std::string log = child->ReadAll();
    return {child->Finish(), std::move(log)};
  }

  int port_ = 0;
  std::unique_ptr<Child> server_;
};

TEST_P(InteropProgramsTest, EachCaseOfTheClientPasses) {
  for (const char* name : kCases) {
    const Ended ended = RunCase(name);
    EXPECT_EQ(ended.code, 0) << name << ":\n" << ended.log;
  }
}

// Reads 2,000 messages, with a pause after each. Takes 40 seconds.
TEST_P(InteropProgramsTest, ASlowConsumerGetsEverything) {
  const Ended ended = RunCase("slow_consumer");
  EXPECT_EQ(ended.code, 0) << ended.log;
}

TEST_P(InteropProgramsTest, StressOfAllCasesFindsNoErrors) {
  ExpectNoErrors(kAllCases);
}

TEST_P(InteropProgramsTest, StressOfCancelsFindsNoErrors) {
  ExpectNoErrors(kCancels);
}

INSTANTIATE_TEST_SUITE_P(Paths, InteropProgramsTest, testing::ValuesIn(Paths()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    absl::string_view flag = argv[i];
    if (absl::ConsumePrefix(&flag, "--seconds=")) {
      penstock::stress_seconds = std::string(flag);
    }
  }
  return RUN_ALL_TESTS();
}
