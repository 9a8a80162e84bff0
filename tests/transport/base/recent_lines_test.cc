#include "transport/base/recent_lines.h"

#include <gtest/gtest.h>

namespace penstock::base {
namespace {

TEST(RecentLinesTest, LinesInTurnAreEachLoggedOnceAnInterval) {
  RecentLines lines(absl::Minutes(1));
  absl::Time now = absl::UnixEpoch();
  int logged = 0;
  for (int second = 0; second < 180; ++second) {
    for (const char* line : {"shard 0 is lost", "shard 1 is lost"}) {
      logged += lines.IsNews(line, now) ? 1 : 0;
    }
    now += absl::Seconds(1);
  }
  EXPECT_EQ(logged, 2 * 3);
}

}  // namespace
}  // namespace penstock::base
