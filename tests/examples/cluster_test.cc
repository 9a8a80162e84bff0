// Tests the start of servers and the supervision of workers, with shell scripts
// as workers.

#include "examples/common/cluster.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "examples/common/progress.h"

namespace penstock::examples {
namespace {

using Lines = std::vector<std::pair<unsigned, double>>;

// Runs two workers with one server. In the script, $0 is --servers=..., and $1
// is --rank=...
absl::Status RunScript(const std::string& script, Lines* lines) {
  auto cluster = Cluster::Start(/*servers=*/1, /*workers=*/2);
  if (!cluster.ok()) return cluster.status();
  absl::Status status = (*cluster)->RunWorkers(
      "/bin/sh", {"-c", script},
      [lines](unsigned step, double loss) { lines->emplace_back(step, loss); });
  if (!status.ok()) return status;
  return (*cluster)->Stop();
}

TEST(ClusterTest, TellsWhatRankZeroSays) {
  Lines lines;
  const absl::Status status =
      RunScript("echo step ${1#--rank=}25 0.5; echo step 50 0.25", &lines);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(lines, (Lines{{25, 0.5}, {50, 0.25}}));
}

TEST(ClusterTest, AWorkerThatFailsEndsTheRunWithItsName) {
  Lines lines;
  // Rank 0 waits for input. The other worker fails, and must end the run.
  // Otherwise rank 0 would wait forever.
  const absl::Status status =
      RunScript("[ $1 = --rank=0 ] && read line; exit 3", &lines);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(), "sh exited with 3");
}

TEST(ClusterTest, AServerThatEndsEarlyIsAnError) {
  Lines lines;
  // Expects that rank 0 can end the server cleanly, although rank 0 is not the
  // server's parent.
  const absl::Status status = RunScript(
      "[ $1 = --rank=0 ] || read line\n"
      "for child in $(cat /proc/$PPID/task/$PPID/children); do\n"
      "  [ $(cat /proc/$child/comm) = ps_server ] && kill $child\n"
      "done\n"
      "read line",
      &lines);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(absl::StrContains(status.message(), "ps_server")) << status;
}

TEST(ClusterTest, ALineThatIsNoProgressIsQuoted) {
  for (const char* line :
       {"hello", "step 5", "step x 1", "step 5 x", "step 5 1 1", "step -1 1"}) {
    Lines lines;
    const absl::Status status =
        RunScript(std::string("echo ") + line + "; read line", &lines);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_TRUE(absl::StrContains(status.message(), line)) << status;
    EXPECT_TRUE(lines.empty());
  }
}

TEST(ProgressTest, ALineOf25StepsHasTheirMeanLoss) {
  testing::internal::CaptureStdout();
  ProgressPrinter printer;
  for (unsigned step = 1; step <= 60; ++step) {
    printer.Add(step, step <= 25 ? step : 2);
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "step 25 13\nstep 50 2\n");
}

}  // namespace
}  // namespace penstock::examples
