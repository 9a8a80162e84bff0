#include "tests/transport/metrics/moved_counters.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace penstock::metrics {
namespace {

using Lines = std::vector<std::string>;

TEST(MovedCountersTest, NamesTheSeriesThatMoved) {
  const std::string before =
      "# HELP a_total of something\n# TYPE a_total counter\n"
      "a_total{path=\"shm\"} 1\na_total{path=\"tcp\"} 5\n";
  const std::string after =
      "# TYPE a_total counter\n"
      "a_total{path=\"shm\"} 3\na_total{path=\"tcp\"} 5\n";
  EXPECT_EQ(MovedCounters(before, after), Lines{"a_total{path=\"shm\"} +2"});
  EXPECT_EQ(MovedCounters(after, after), Lines{});
}

TEST(MovedCountersTest, GaugesAndHistogramsMayMove) {
  const std::string before = "# TYPE b gauge\nb 1\n";
  const std::string after =
      "# TYPE b gauge\nb 2\n# TYPE c histogram\nc_sum 1\n";
  EXPECT_EQ(MovedCounters(before, after), Lines{});
}

TEST(MovedCountersTest, UnknownCounterMovesWithoutCause) {
  const std::string after =
      "# TYPE penstock_new_total counter\npenstock_new_total 1\n"
      "# TYPE penstock_streams_started_total counter\n"
      "penstock_streams_started_total{role=\"client\"} 1\n"
      "# TYPE penstock_sessions_ended_total counter\n"
      "penstock_sessions_ended_total{role=\"client\",end=\"closed\"} 1\n"
      "penstock_sessions_ended_total{role=\"client\",end=\"error\"} 1\n";
  EXPECT_EQ(MovedWithoutCause("", after),
            (Lines{"penstock_new_total +1",
                   "penstock_sessions_ended_total{role=\"client\",end="
                   "\"error\"} +1"}));
}

}  // namespace
}  // namespace penstock::metrics
