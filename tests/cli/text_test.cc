// Tests parsing and formatting of sizes, times and lines.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "cli/doctor_report.h"
#include "cli/text/output.h"
#include "cli/text/units.h"
#include "gtest/gtest.h"

namespace penstock::cli {
namespace {

TEST(UnitsTest, SizesAreWrittenAsTheyAreRead) {
  for (const char* text : {"8 B", "64 KiB", "1 MiB", "2 GiB"}) {
    const auto size = ParseSize(text);
    ASSERT_TRUE(size.ok()) << size.status();
    EXPECT_EQ(BytesText(*size), text);
  }
  EXPECT_EQ(*ParseSize("64KiB"), size_t{64} << 10);
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(0), "0 B");
}

TEST(UnitsTest, WhatIsNoSizeIsRefused) {
  for (const char* text :
       {"", "KiB", "-1", "1.5KiB", "1TB", "x", "18446744073709551615GiB"}) {
    EXPECT_FALSE(ParseSize(text).ok()) << text;
  }
  EXPECT_FALSE(ParseSizes("8,8", 100).ok());
  EXPECT_FALSE(ParseSizes("8,", 100).ok());
  EXPECT_FALSE(ParseSizes("101", 100).ok());
  EXPECT_EQ(ParseSizes("8,1KiB", 1024)->size(), 2U);
}

TEST(UnitsTest, TimesHaveThreeDigits) {
  EXPECT_EQ(DurationText(absl::Nanoseconds(12345)), "12.3 us");
  EXPECT_EQ(DurationText(absl::Nanoseconds(999)), "1.00 us");
  EXPECT_EQ(DurationText(absl::Microseconds(9.996)), "10.0 us");
  EXPECT_EQ(DurationText(absl::Microseconds(999.6)), "1.00 ms");
  EXPECT_EQ(DurationText(absl::Milliseconds(2500)), "2.50 s");
  EXPECT_EQ(DurationText(absl::ZeroDuration()), "0.00 us");
}

TEST(UnitsTest, WhatIsNoTimeIsRefused) {
  EXPECT_EQ(*ParseDuration("0.2"), absl::Milliseconds(200));
  EXPECT_EQ(*ParseDuration("200ms"), absl::Milliseconds(200));
  EXPECT_EQ(*ParseDuration("0"), absl::ZeroDuration());
  for (const char* text : {"", "-1", "-1s", "nan", "inf", "x", "25h", "1e99"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
}

TEST(UnitsTest, ALimitIsAboveZeroAndItsErrorNamesTheFlag) {
  EXPECT_EQ(*ParseLimit("--within", "1s"), absl::Seconds(1));
  EXPECT_EQ(ParseLimit("--within", "0").status().message(),
            "--within: must be above 0");
  EXPECT_EQ(ParseLimit("--within", "x").status().message(),
            "--within: \"x\" is no time: use 200ms, 1s or 0.5");
}

TEST(WrappedTest, LinesKeepToTheWidthAndTheIndent) {
  EXPECT_EQ(Wrapped("one two three", 2, 9), "one two\n  three");
  EXPECT_EQ(Wrapped("  one\n two ", 0, 80), "one two");
  EXPECT_EQ(Wrapped("averylongword b", 2, 5), "averylongword\n  b");
  EXPECT_EQ(Wrapped("", 2, 9), "");
}

TEST(FittedTest, OnlyLinesThatAreTooLongAreBroken) {
  const Output terminal(STDOUT_FILENO, {false, 40, 40, /*is_terminal=*/true});
  const std::string text =
      "step  1   full\n  a line of words that has no room in forty columns\n";
  EXPECT_EQ(
      Fitted(text, terminal),
      "step  1   full\n  a line of words that has no room\n      in forty "
      "columns\n");
  EXPECT_EQ(Fitted(text, Output(STDOUT_FILENO, {false, 40, 40})), text);
  EXPECT_EQ(Fitted(std::string(50, ' '), terminal), std::string(50, ' '));
}

TEST(OutputTest, ColoursAreForTerminalsOnly) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(Output(ends[1]).Styled(Style::kBad, "x"), "x");
  EXPECT_EQ(Output(ends[1], {true, 80}).Styled(Style::kBad, "x"),
            "\x1b[1;31mx\x1b[0m");
  EXPECT_EQ(Output(ends[1], {true, 80}).Styled(Style::kPlain, "x"), "x");
  close(ends[0]);
  close(ends[1]);
}

TEST(OutputTest, AClosedPipeAndAFullDiskAreToldApart) {
  signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  Output closed(ends[1]);
  closed.Write("x");
  EXPECT_EQ(closed.status().code(), absl::StatusCode::kCancelled);
  close(ends[1]);
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  Output disk(full);
  disk.Write("x");
  EXPECT_FALSE(disk.status().ok());
  EXPECT_NE(disk.status().code(), absl::StatusCode::kCancelled);
  close(full);
}

TEST(ReportTest, NoLineIsWiderThanTheTerminal) {
  DoctorReport report;
  report.paths = {{"shm", true, "to processes of this machine and user"}};
  report.target = TargetReport{
      "ps0:50051",           "tcp", "", "shm: another host", "its echo service",
      absl::Microseconds(61)};
  report.findings = {{"RDMA", "mlx5_0/1", Level::kProblem,
                      "the port is DOWN, not ACTIVE",
                      "check the cable and the switch, then look again"}};
  const Output out(STDOUT_FILENO, {false, 50});
  const std::string text = ReportText(report, out, /*brief=*/false);
  size_t width = 0;
  size_t column = 0;
  for (const char letter : text) {
    column = letter == '\n' ? 0 : column + 1;
    width = std::max(width, column);
  }
  EXPECT_LE(width, 50U);
  EXPECT_NE(text.find("1 problem, 0 notes"), std::string::npos);
}

TEST(ReportTest, BriefLeavesOutWhatIsOk) {
  DoctorReport report;
  report.findings = {{"GPU", "CUDA", Level::kOk, "no driver here", ""}};
  const Output out(STDOUT_FILENO, {false, 80});
  EXPECT_NE(ReportText(report, out, false).find("CUDA"), std::string::npos);
  EXPECT_EQ(ReportText(report, out, true).find("GPU"), std::string::npos);
}

}  // namespace
}  // namespace penstock::cli
