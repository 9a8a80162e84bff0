#include "bench/rpc/report/report.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "bench/rpc/report/result_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Cell MakeCell(Transport transport, Benchmark benchmark = Benchmark::kLatency) {
  return {benchmark, transport, Api::kSync, 1024};
}

RoundResult Round(double p50, double p99, double mb_per_s, double rpcs) {
  RoundResult result;
  result.p50_us = p50;
  result.p99_us = p99;
  result.mb_per_s = mb_per_s;
  result.rpcs = rpcs;
  return result;
}

CellSummary Measured(Transport transport, double p50, double mb_per_s,
                     Benchmark benchmark = Benchmark::kLatency) {
  return MedianOf(MakeCell(transport, benchmark),
                  {Round(p50, 2 * p50, mb_per_s, 100)});
}

CellSummary Unavailable(Transport transport) {
  CellSummary summary;
  summary.cell = MakeCell(transport);
  summary.unavailable = "no such thing";
  return summary;
}

TEST(SummarizeTest, BandwidthCountsOneDirection) {
  LoadResult load;
  load.latencies_us = {30, 10, 20};
  load.seconds = 0.5;
  const RoundResult result = Summarize(MakeCell(Transport::kTcp), load);
  EXPECT_EQ(result.p50_us, 20);
  EXPECT_EQ(result.p99_us, 30);
  EXPECT_EQ(result.rpcs, 3);
  EXPECT_DOUBLE_EQ(result.mb_per_s, 3 * 1024 / 0.5 / 1e6);
}

TEST(CsvTest, HasALineOfNamesAndOneOfEachMeasuredCell) {
  const std::string csv =
      ToCsv({Measured(Transport::kTcp, 10, 5), Unavailable(Transport::kVerbs),
             Measured(Transport::kShm, 2, 20)});
  std::istringstream lines(csv);
  std::string names, tcp, shm, rest;
  std::getline(lines, names);
  std::getline(lines, tcp);
  std::getline(lines, shm);
  EXPECT_FALSE(std::getline(lines, rest)) << rest;
  EXPECT_EQ(names.substr(0, 29), "benchmark,transport,api,bytes");
  EXPECT_EQ(tcp.substr(0, 40), "latency,tcp,sync,1024,1,equal,10.0,10.0,");
  for (const std::string& line : {tcp, shm}) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','),
              std::count(names.begin(), names.end(), ','))
        << line;
  }
}

TEST(CpuTest, SecondsAreOfAMillionCallsAndOfAGigabyte) {
  CellSummary summary = Measured(Transport::kTcp, 10, 5);
  summary.median.cpu_us = 30;
  EXPECT_DOUBLE_EQ(CpuSecondsPerMillion(summary), 30);
  EXPECT_DOUBLE_EQ(CpuSecondsPerGb(summary), 30e-6 / 1024 * 1e9);
}

TEST(SummarizeTest, NothingMeasuredIsAllZero) {
  const RoundResult result = Summarize(MakeCell(Transport::kTcp), {});
  EXPECT_EQ(result.p50_us, 0);
  EXPECT_EQ(result.mb_per_s, 0);
}

TEST(MedianOfTest, EachValueIsItsOwnMedian) {
  const CellSummary summary =
      MedianOf(MakeCell(Transport::kTcp),
               {Round(10, 90, 1, 7), Round(12, 50, 3, 9), Round(11, 70, 2, 8)});
  EXPECT_EQ(summary.median.p50_us, 11);
  EXPECT_EQ(summary.median.p99_us, 70);
  EXPECT_EQ(summary.median.mb_per_s, 2);
  EXPECT_EQ(summary.median.rpcs, 8);
  EXPECT_EQ(summary.p50_us.min, 10);
  EXPECT_EQ(summary.p50_us.max, 12);
}

TEST(JsonTest, IsAnArrayWithAnObjectPerMeasuredCell) {
  EXPECT_EQ(ToJson({MedianOf(MakeCell(Transport::kTcp),
                             {Round(99.12345, 250.5, 10.25, 300)}),
                    Unavailable(Transport::kShm)}),
            R"([
  {
    "benchmark": "latency",
    "transport": "tcp",
    "api": "sync",
    "bytes": 1024,
    "buffers": 1,
    "scheme": "equal",
    "p50_us": 99.123,
    "p50_min_us": 99.123,
    "p50_max_us": 99.123,
    "p90_us": 0.0,
    "p99_us": 250.5,
    "p999_us": 0.0,
    "mb_per_s": 10.25,
    "page_faults": 0.0,
    "rpcs": 300
  }
]
)");
}

TEST(JsonTest, NoCellsAreAnEmptyArray) { EXPECT_EQ(ToJson({}), "[]\n"); }

TEST(TableTest, ComparesWithTcpAndNamesTheUnavailable) {
  std::ostringstream out;
  PrintTable(
      {Measured(Transport::kTcp, 100, 5), Measured(Transport::kUds, 40, 12.5),
       Unavailable(Transport::kShm)},
      {/*page_faults=*/false, /*details=*/false}, out);
  EXPECT_EQ(
      out.str(),
      "latency, sync, 1KiB\n"
      "                    p50 us     p99 us        p50 min..max       MB/s  "
      "calls/s   vs tcp\n"
      "  tcp                100.0      200.0        100.0..100.0        5.0  "
      "   4883    1.00x\n"
      "  uds                 40.0       80.0          40.0..40.0       12.5  "
      "  12207    2.50x\n"
      "  shm           unavailable [1]\n"
      "[1] shm: no such thing\n");
}

TEST(TableTest, TlsIsComparedWithTls) {
  std::ostringstream out;
  PrintTable(
      {Measured(Transport::kTcp, 100, 5), Measured(Transport::kTls, 300, 5),
       Measured(Transport::kPenstockTls, 60, 5)},
      {/*page_faults=*/false, /*details=*/false}, out);
  EXPECT_THAT(out.str(), HasSubstr("5.00x"));
  EXPECT_THAT(out.str(), Not(HasSubstr("1.67x")));
}

TEST(TableTest, BandwidthIsComparedByBandwidth) {
  std::ostringstream out;
  PrintTable({Measured(Transport::kTcp, 100, 5, Benchmark::kStream),
              Measured(Transport::kUds, 100, 20, Benchmark::kStream)},
             {/*page_faults=*/false, /*details=*/false}, out);
  EXPECT_THAT(out.str(), HasSubstr("4.00x"));
}

TEST(TableTest, PageFaultsAreAColumnWhereTheyAreWanted) {
  RoundResult round = Round(100, 200, 5, 1);
  round.page_faults = 1.5;
  std::ostringstream out;
  PrintTable({MedianOf(MakeCell(Transport::kTcp), {round}),
              Unavailable(Transport::kShm)},
             {/*page_faults=*/true, /*details=*/false}, out);
  EXPECT_EQ(
      out.str(),
      "latency, sync, 1KiB\n"
      "                    p50 us     p99 us        p50 min..max       MB/s  "
      "calls/s   vs tcp    faults\n"
      "  tcp                100.0      200.0        100.0..100.0        5.0  "
      "   4883    1.00x      1.50\n"
      "  shm           unavailable [1]\n"
      "[1] shm: no such thing\n");
}

TEST(TableTest, AReplayHasTheTimeAndTheBytesOfAllItsCalls) {
  RoundResult round = Round(100, 200, 500, 40);
  round.seconds = 4;
  round.cpu_us = 1000;
  Cell cell = MakeCell(Transport::kTcp, Benchmark::kReplay);
  cell.bytes = 2 * 1000 * 1000 * 1000;
  const CellSummary summary = MedianOf(cell, {round});
  EXPECT_DOUBLE_EQ(CpuSecondsPerGb(summary), 0.02);
  EXPECT_THAT(ToJson({summary}), HasSubstr("\"seconds\": 4.0"));
  std::ostringstream out;
  PrintTable({summary}, {/*page_faults=*/false, /*details=*/false}, out);
  EXPECT_EQ(
      out.str(),
      "replay, sync, 1953125KiB\n"
      "                  seconds     p50 us     p99 us        p50 min..max"
      "       MB/s  calls/s   vs tcp\n"
      "  tcp               4.000      100.0      200.0        100.0..100.0"
      "      500.0       10    1.00x\n");
}

CellSummary Idle(Transport transport, double cpu_percent, double kib) {
  RoundResult result;
  result.cpu_percent = cpu_percent;
  result.kib_per_channel = kib;
  return MedianOf(MakeCell(transport, Benchmark::kIdle), {result});
}

TEST(TableTest, IdleChannelsAreComparedByMemory) {
  std::ostringstream out;
  PrintTable({Idle(Transport::kTcp, 0.25, 70), Idle(Transport::kShm, 0.5, 95)},
             {/*page_faults=*/true, /*details=*/false}, out);
  EXPECT_EQ(out.str(),
            "idle, sync, 1KiB\n"
            "                     CPU %  KiB/channel   beyond tcp\n"
            "  tcp                0.250         70.0         +0.0\n"
            "  shm                0.500         95.0        +25.0\n");
}

TEST(JsonTest, AnIdleCellHasNoTimes) {
  EXPECT_EQ(ToJson({Idle(Transport::kShm, 0.5, 95)}),
            R"([
  {
    "benchmark": "idle",
    "transport": "shm",
    "api": "sync",
    "bytes": 1024,
    "buffers": 1,
    "scheme": "equal",
    "cpu_percent": 0.5,
    "kib_per_channel": 95.0
  }
]
)");
}

TEST(TableTest, WithoutTcpThereIsNoRatio) {
  std::ostringstream out;
  PrintTable({Unavailable(Transport::kTcp), Measured(Transport::kUds, 40, 1)},
             {/*page_faults=*/false, /*details=*/false}, out);
  EXPECT_THAT(out.str(), HasSubstr("       -\n"));
}

TEST(ResultFileTest, HoldsTheTextAndNoBlanks) {
  const std::string path = testing::TempDir() + "/result.json";
  auto file = ResultFile::Open(path, 1000);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Write("[]\n").ok());
  std::ifstream in(path);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(text, "[]\n");
}

TEST(ResultFileTest, FullDiskIsFoundAtOpening) {
  const auto file = ResultFile::Open("/dev/full", 1000);
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("/dev/full"));
}

TEST(ResultFileTest, MissingFolderIsFoundAtOpening) {
  EXPECT_FALSE(ResultFile::Open("/nonexistent/result.json", 10).ok());
}

}  // namespace
}  // namespace bench
}  // namespace penstock
